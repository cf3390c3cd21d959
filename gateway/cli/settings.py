"""How the command line finds the gateway, and what it shows there: environment and `.env`, prefix RAKUTEN_."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from common.gateway_target import DEFAULT_GRPC_PORT, FORMER_NAME, RENAME, GatewayTarget
from common.settings import PREFIX, Port, SettingsError, load
from common.tokens import split_token


def _first(value: object) -> object:
    """Of a list kept for rotation the first token is shown to the gateway, without the name that it may have."""
    if not isinstance(value, str):
        return value
    return next((split_token(part.strip())[1] for part in value.split(",") if part.strip()), None)


Token = Annotated[SecretStr | None, BeforeValidator(_first)]


class CommandSettings(BaseSettings):
    """Every setting of the commands that talk to a running gateway."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_ignore_empty=True, extra="ignore", hide_input_in_errors=True
    )

    order_gateway_url: str = Field(
        "",
        description="Where the commands find the gateway: grpc://host:port or grpcs://host:port (TLS). Default: this "
        "machine at RAKUTEN_GATEWAY_GRPC_PORT.",
    )
    gateway_url: str = Field("", description=FORMER_NAME)
    gateway_grpc_port: Port = Field(DEFAULT_GRPC_PORT, description="Port for gRPC; 0 takes a free one, told at start.")
    operator_token: Token = Field(None, description="Tokens for operators; the commands show the first one.")
    api_token: Token = Field(None, description="Tokens for every role; shown where no operator token is set.")
    viewer_token: Token = Field(None, description="Tokens for viewers; shown where neither of the other two is set.")
    gateway_ca: Path | None = Field(
        None, description="PEM file of the authority that signed the gateway's certificate. Default: the system's own."
    )
    operator_tls_cert: Path | None = Field(
        None, description="PEM client certificate of the person, where the gateway asks for one."
    )
    operator_tls_key: Path | None = Field(None, description="PEM key of that client certificate.")

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if (self.operator_tls_cert is None) != (self.operator_tls_key is None):
            raise ValueError(f"{PREFIX}OPERATOR_TLS_CERT and {PREFIX}OPERATOR_TLS_KEY must be set together")
        return self

    @property
    def token(self) -> str | None:
        """The token to show."""
        shown = self.operator_token or self.api_token or self.viewer_token
        return None if shown is None else shown.get_secret_value()

    def unusual(self) -> list[str]:
        """Return a sentence for each value that works but should be put otherwise."""
        return [RENAME] if self.gateway_url else []

    def target(self, url: str | None) -> GatewayTarget:
        """Return where to go; `url` comes before the settings. Raises SettingsError."""
        wanted = url or self.order_gateway_url or self.gateway_url or f"grpc://127.0.0.1:{self.gateway_grpc_port}"
        try:
            target = GatewayTarget(wanted)
        except ValueError as error:
            raise SettingsError(f"{PREFIX}ORDER_GATEWAY_URL: {error}") from None
        if self.token and not target.tls and not target.is_loopback:
            raise SettingsError(f"the token would travel in plain text to {target.host}; use grpcs://")
        return target


def load_command_settings() -> CommandSettings:
    """Read the settings. Raises SettingsError with one line for each setting that makes no sense."""
    return load(CommandSettings)
