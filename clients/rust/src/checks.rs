//! What every client of these examples shows.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};

use crate::gateway::Gateway;
use crate::pb::submit_orders_result::Outcome;
use crate::pb::{
    ErrorReason, ListOrdersRequest, OrderState, SubmitOrderRequest, TaskFilter, TaskStatus,
};
use crate::refusals::refusal_of;

/// No worker serves this site here: what is filed there stays queued.
const QUEUE: &str = "rakuten";

/// Clients of the same gateway.
pub struct Ways {
    /// As it should be.
    pub plain: Gateway,
    /// With a token that nobody knows.
    pub wrong_token: Gateway,
    /// Through a proxy that loses the first two answers about each task whose id begins with `lost-`.
    pub lossy: Gateway,
    /// With TLS, trusting the CA that signed the gateway's certificate.
    pub tls: Gateway,
    /// With TLS, trusting nobody.
    pub tls_of_strangers: Gateway,
}

/// What was found right, and what was not.
#[derive(Default)]
pub struct Checks {
    pub passed: usize,
    pub failures: Vec<String>,
}

impl Checks {
    pub fn that(&mut self, what: &str, holds: bool) {
        if holds {
            self.passed += 1;
        } else {
            self.failures.push(what.to_owned());
        }
    }
}

/// Runs all checks. `name` goes into the task ids: each run needs one of its own.
pub async fn check_all(
    checks: &mut Checks,
    ways: &Ways,
    shop: &str,
    name: &str,
) -> Result<(), Status> {
    submission(checks, &ways.plain, shop, &format!("order-{name}")).await?;
    lists(checks, &ways.plain, &format!("list-{name}")).await?;
    refusals(checks, ways, name).await?;
    lost_answers(checks, ways, name).await?;
    over_tls(checks, ways, &format!("tls-{name}")).await
}

fn order(task_id: &str, site: &str, intent_json: &str) -> SubmitOrderRequest {
    SubmitOrderRequest {
        task_id: task_id.to_owned(),
        site: site.to_owned(),
        intent_json: intent_json.to_owned(),
        ..Default::default()
    }
}

async fn submission(
    checks: &mut Checks,
    gateway: &Gateway,
    shop: &str,
    task_id: &str,
) -> Result<(), Status> {
    // The intent is handed on as it is; a number beyond what a program counts exactly travels in it unharmed.
    let intent = format!(
        r#"{{"item_url": "{shop}/item/sandbox-store/sencha-100g/", "quantity": 1, "max_total_yen": 5000, "reference": 12345678901234567890, "note": "煎茶を一袋"}}"#
    );
    let wanted = SubmitOrderRequest {
        max_total_yen: Some(5000),
        ..order(task_id, "sandbox", &intent)
    };
    let first = gateway.submit(wanted.clone()).await?;
    checks.that("submit: makes a task", first.created);
    let again = gateway.submit(wanted).await?;
    let same = !again.created && again.task_id == task_id && again.differs.is_empty();
    checks.that("submit again: is the same task", same);
    let other = gateway.submit(order(task_id, "sandbox", "{}")).await?;
    let told = other.differs.iter().any(|field| field == "intent_json");
    checks.that("submit another intent: changes nothing, and says so", told);
    let mut task = gateway.get(task_id).await?;
    checks.that(
        "get: 20 digits and Japanese are as they were sent",
        task.intent_json == intent,
    );

    let mut watch = gateway.watch(task_id, Duration::from_secs(60));
    while let Some(change) = watch.next().await? {
        task = change;
    }
    let paid = task.status() == TaskStatus::Succeeded && task.latest_state() == OrderState::Paid;
    checks.that("watch: ends with the order paid", paid);
    Ok(())
}

async fn lists(checks: &mut Checks, gateway: &Gateway, prefix: &str) -> Result<(), Status> {
    let labels = HashMap::from([("batch".to_owned(), prefix.to_owned())]);
    let mut batch: Vec<_> = (1..=3)
        .map(|number| SubmitOrderRequest {
            labels: labels.clone(),
            ..order(&format!("{prefix}-{number}"), QUEUE, "{}")
        })
        .collect();
    batch.push(order(&format!("{prefix}-4"), QUEUE, "no JSON"));
    let outcomes: Vec<_> = gateway
        .submit_many(batch)
        .await?
        .into_iter()
        .filter_map(|result| result.outcome)
        .collect();
    let filed = |outcome: &&Outcome| matches!(outcome, Outcome::Submitted(order) if order.created);
    checks.that(
        "batch: files three",
        outcomes.iter().filter(filed).count() == 3,
    );
    let named = matches!(&outcomes[3..], [Outcome::Refusal(refusal)] if refusal.field == "orders[3].intent_json");
    checks.that("batch: refuses one, and names its field", named);

    let mut listing = gateway.list(ListOrdersRequest {
        page_size: 2,
        filter: Some(TaskFilter {
            labels,
            ..Default::default()
        }),
        ..Default::default()
    });
    let mut listed = Vec::new();
    while let Some(task) = listing.next().await? {
        listed.push(task.task_id);
    }
    let newest_first: Vec<_> = [3, 2, 1].map(|number| format!("{prefix}-{number}")).into();
    checks.that(
        "list: gives each once, over two pages",
        listed == newest_first,
    );
    Ok(())
}

async fn refusals(checks: &mut Checks, ways: &Ways, name: &str) -> Result<(), Status> {
    let task_id = format!("unknown-{name}");
    let unknown = ways.plain.get(&task_id).await.err();
    let refusal = unknown.as_ref().and_then(refusal_of);
    let named = refusal.is_some_and(|refusal| refusal.reason() == ErrorReason::TaskNotFound);
    checks.that("an unknown task: has its reason", named);

    let malformed = ways
        .plain
        .submit(order(&format!("m-{name}"), QUEUE, "{"))
        .await
        .err();
    let refusal = malformed.as_ref().and_then(refusal_of).unwrap_or_default();
    let fields: Vec<_> = refusal
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    checks.that(
        "a malformed intent: names the field",
        fields == ["intent_json"],
    );

    let stranger = ways.wrong_token.get(&task_id).await.err();
    let refusal = stranger.as_ref().and_then(refusal_of);
    let named = refusal.is_some_and(|refusal| refusal.reason() == ErrorReason::Unauthenticated);
    checks.that("a wrong token: has its reason", named);

    let task_id = format!("wait-{name}");
    ways.plain.submit(order(&task_id, QUEUE, "{}")).await?;
    let mut watch = ways.plain.watch(&task_id, Duration::from_millis(300));
    let late = loop {
        match watch.next().await {
            Ok(Some(_)) => {}
            Ok(None) => break false,
            Err(status) => break status.code() == Code::DeadlineExceeded,
        }
    };
    checks.that("a deadline: is told as such", late);
    Ok(())
}

async fn lost_answers(checks: &mut Checks, ways: &Ways, name: &str) -> Result<(), Status> {
    let wanted = order(&format!("lost-submit-{name}"), QUEUE, "{}");
    let lost = ways.lossy.submit(wanted).await?;
    checks.that(
        "a lost answer: the same task_id makes no second task",
        !lost.created && lost.differs.is_empty(),
    );
    let task_id = format!("lost-watch-{name}");
    ways.plain.submit(order(&task_id, QUEUE, "{}")).await?;
    ways.plain.cancel(&task_id, "nobody needs it").await?;
    let mut watch = ways.lossy.watch(&task_id, Duration::from_secs(30));
    let mut seen = Vec::new();
    while let Some(task) = watch.next().await? {
        seen.push(task.status());
    }
    checks.that(
        "a lost stream: is watched again, to the end",
        seen == [TaskStatus::Failed],
    );
    Ok(())
}

async fn over_tls(checks: &mut Checks, ways: &Ways, task_id: &str) -> Result<(), Status> {
    let trusted = ways.tls.submit(order(task_id, QUEUE, "{}")).await?;
    checks.that(
        "TLS: with the CA it is a call as any other",
        trusted.created,
    );
    let strange = ways.tls_of_strangers.get(task_id).await;
    checks.that(
        "TLS: without the CA there is no call",
        strange.is_err_and(|status| refusal_of(&status).is_none()),
    );
    Ok(())
}
