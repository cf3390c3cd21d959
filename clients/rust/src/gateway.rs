//! An upstream's client of the gateway, by tonic.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::{Interceptor, interceptor::InterceptedService};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use crate::pb::order_service_client::OrderServiceClient;
use crate::pb::watch_order_response::Event;
use crate::pb::{
    CancelOrderRequest, GetOrderRequest, ListOrdersRequest, ListOrdersResponse, SubmitOrderRequest,
    SubmitOrderResponse, SubmitOrdersRequest, SubmitOrdersResult, Task, TaskStatus,
    WatchOrderRequest, WatchOrderResponse,
};
use crate::refusals::pause_before_retry;

/// Bounds a call with all of its repeats, unless the client is told otherwise.
const WHOLE_CALL: Duration = Duration::from_secs(30);
/// One try gets no longer than this of it: a connection may be dead without saying so.
const ONE_TRY: Duration = Duration::from_secs(10);
/// A watch says something every 10 s; when it has been silent for three times as long, its connection is dead.
const SILENCE: Duration = Duration::from_secs(30);

type Orders = OrderServiceClient<InterceptedService<Channel, Bearer>>;

/// Sends the token with every call.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request
            .metadata_mut()
            .insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// What keeps a client from being made.
pub type SetupError = Box<dyn std::error::Error>;

/// Repeats calls that were not answered, until a deadline.
pub struct Gateway {
    orders: Orders,
    deadline: Duration,
}

impl Gateway {
    /// A client whose connection is opened at the first call. With `https` it trusts the CAs in `ca` (PEM), and no other.
    pub fn new(url: &str, token: &str, ca: &str) -> Result<Self, SetupError> {
        // The gateway ends a connection that pings more often than every 5 s.
        let mut endpoint = Endpoint::from_shared(url.to_owned())?
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(5))
            .keep_alive_while_idle(true);
        if url.starts_with("https:") {
            let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
            endpoint = endpoint.tls_config(tls)?;
        }
        let bearer = Bearer(format!("Bearer {token}").parse()?);
        Ok(Self {
            orders: OrderServiceClient::with_interceptor(endpoint.connect_lazy(), bearer),
            deadline: WHOLE_CALL,
        })
    }

    /// The same client with another bound for each call with all of its repeats.
    pub fn within(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Files an order. A lost answer is healed by sending the same request again, which needs a task_id of your own: keep
    /// it with the thing that is to be bought, before the first call.
    pub async fn submit(&self, order: SubmitOrderRequest) -> Result<SubmitOrderResponse, Status> {
        if order.task_id.is_empty() {
            let words = "an order without a task_id of your own cannot be sent again";
            return Err(Status::invalid_argument(words));
        }
        self.repeated(order, |mut orders, request| async move {
            orders.submit_order(request).await
        })
        .await
    }

    /// Files up to 500 orders by one commit; each result tells of the order in its place.
    pub async fn submit_many(
        &self,
        orders: Vec<SubmitOrderRequest>,
    ) -> Result<Vec<SubmitOrdersResult>, Status> {
        let request = SubmitOrdersRequest { orders };
        self.repeated(request, |mut orders, request| async move {
            orders.submit_orders(request).await
        })
        .await
        .map(|response| response.results)
    }

    pub async fn get(&self, task_id: &str) -> Result<Task, Status> {
        let request = GetOrderRequest {
            task_id: task_id.to_owned(),
        };
        self.repeated(request, |mut orders, request| async move {
            orders.get_order(request).await
        })
        .await
        .map(|response| response.task.unwrap_or_default())
    }

    /// All tasks that match, newest first, fetched page by page as they are wanted.
    pub fn list(&self, wanted: ListOrdersRequest) -> Listing<'_> {
        Listing {
            gateway: self,
            wanted: Some(wanted),
            page: Vec::new().into_iter(),
        }
    }

    /// Ends a task that no worker has taken yet, as failed.
    pub async fn cancel(&self, task_id: &str, reason: &str) -> Result<Task, Status> {
        let request = CancelOrderRequest {
            task_id: task_id.to_owned(),
            reason: reason.to_owned(),
            ..Default::default()
        };
        self.repeated(request, |mut orders, request| async move {
            orders.cancel_order(request).await
        })
        .await
        .map(|response| response.task.unwrap_or_default())
    }

    /// The task as it is, then after each change, until it has ended or the time is over.
    pub fn watch(&self, task_id: &str, within: Duration) -> Watch {
        Watch {
            orders: self.orders.clone(),
            task_id: task_id.to_owned(),
            deadline: Instant::now() + within,
            stream: None,
            seen: None,
            tries: 0,
        }
    }

    /// Sends a call until it is answered, refused for good, or the deadline has passed.
    async fn repeated<Q, A, F>(
        &self,
        request: Q,
        call: impl Fn(Orders, Request<Q>) -> F,
    ) -> Result<A, Status>
    where
        Q: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let deadline = Instant::now() + self.deadline;
        for tries in 0.. {
            let one_try = ONE_TRY.min(deadline.saturating_duration_since(Instant::now()));
            let mut attempt = Request::new(request.clone());
            attempt.set_timeout(one_try);
            let answer = timeout(one_try, call(self.orders.clone(), attempt)).await;
            match answer.unwrap_or_else(|_| Err(late())) {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) => pause_or_fail(status, tries, deadline).await?,
            }
        }
        unreachable!("tries have no end")
    }
}

/// Tasks of a list; see `Gateway::list`.
pub struct Listing<'a> {
    gateway: &'a Gateway,
    wanted: Option<ListOrdersRequest>,
    page: std::vec::IntoIter<Task>,
}

impl Listing<'_> {
    /// The next task; None after the last one.
    pub async fn next(&mut self) -> Result<Option<Task>, Status> {
        loop {
            if let Some(task) = self.page.next() {
                return Ok(Some(task));
            }
            let Some(wanted) = self.wanted.take() else {
                return Ok(None);
            };
            let call =
                |mut orders: Orders, request| async move { orders.list_orders(request).await };
            let ListOrdersResponse {
                tasks,
                next_page_token: page_token,
            } = self.gateway.repeated(wanted.clone(), call).await?;
            self.page = tasks.into_iter(); // a page may be empty and yet not be the last one
            self.wanted = (!page_token.is_empty()).then_some(ListOrdersRequest {
                page_token,
                ..wanted
            });
        }
    }
}

/// A task that is followed; see `Gateway::watch`.
pub struct Watch {
    orders: Orders,
    task_id: String,
    deadline: Instant,
    stream: Option<Streaming<WatchOrderResponse>>,
    seen: Option<Task>,
    tries: u32,
}

impl Watch {
    /// The task after its next change; None once it has ended. Where the stream breaks it is opened again, and what was
    /// seen already is not told twice.
    pub async fn next(&mut self) -> Result<Option<Task>, Status> {
        loop {
            let patience = SILENCE.min(self.deadline.saturating_duration_since(Instant::now()));
            let message = timeout(patience, self.message()).await;
            match message.unwrap_or_else(|_| Err(late())) {
                Ok(Some(message)) => {
                    self.tries = 0;
                    if let Some(Event::Task(task)) = message.event
                        && self.seen.as_ref() != Some(&task)
                    {
                        self.seen = Some(task.clone());
                        return Ok(Some(task));
                    }
                }
                Ok(None) if self.seen.as_ref().is_some_and(has_ended) => return Ok(None),
                Ok(None) => self.stream = None,
                Err(status) => {
                    self.stream = None;
                    pause_or_fail(status, self.tries, self.deadline).await?;
                    self.tries += 1;
                }
            }
        }
    }

    async fn message(&mut self) -> Result<Option<WatchOrderResponse>, Status> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let request = WatchOrderRequest {
                    task_id: self.task_id.clone(),
                };
                let opened = self.orders.watch_order(request).await?.into_inner();
                self.stream.insert(opened)
            }
        };
        stream.message().await
    }
}

/// Whether nothing more happens to a task by itself.
pub fn has_ended(task: &Task) -> bool {
    matches!(
        task.status(),
        TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::NeedsHuman
    )
}

/// Waits until a call may be sent again; gives its status back where it may not, or not before the deadline.
async fn pause_or_fail(status: Status, tries: u32, deadline: Instant) -> Result<(), Status> {
    match pause_before_retry(&status, tries) {
        Some(pause) if Instant::now() + pause < deadline => {
            sleep(pause).await;
            Ok(())
        }
        _ => Err(status),
    }
}

fn late() -> Status {
    Status::deadline_exceeded("no answer within the time that the call was given")
}
