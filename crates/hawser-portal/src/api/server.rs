//! What a portal answers on its control socket: documents from memory, and orders and questions that its control thread
//! hears.

use std::sync::Arc;

use hawser_net::daemon::Answer;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::request::Request;
use super::{Deed, Document, Done, Flows};

/// Who has the documents. Shared by the tasks that answer.
pub trait Answers: Send + Sync {
    /// The document as JSON, from memory; or why there is none.
    ///
    /// # Errors
    /// The reason, in words.
    fn get(&self, document: &Document) -> Result<Vec<u8>, String>;
}

/// Something that was asked for, and who waits for what comes of it, or for why it was not done. Owned by who does it.
#[derive(Debug)]
pub struct Asked {
    /// What.
    pub deed: Deed,
    /// Who waits.
    pub answer: oneshot::Sender<Result<Option<serde_json::Value>, String>>,
}

/// Where orders are heard.
pub type Orders = UnboundedSender<Asked>;
/// Where those who ask for flows are heard: they are counted only while somebody does.
pub type FlowQuestions = UnboundedSender<oneshot::Sender<Flows>>;

/// A portal's answers. At first nobody hears orders, or counts flows; the control socket owns it.
pub struct Answering {
    documents: Arc<dyn Answers>,
    orders: Option<Orders>,
    flows: Option<FlowQuestions>,
}

impl Answering {
    /// Answers with these documents.
    pub fn new(documents: Arc<dyn Answers>) -> Self {
        Self { documents, orders: None, flows: None }
    }

    /// Has these do what is asked for.
    pub fn with_orders(self, orders: Orders) -> Self {
        Self { orders: Some(orders), ..self }
    }

    /// Has these asked for flows.
    pub fn with_flows(self, questions: FlowQuestions) -> Self {
        Self { flows: Some(questions), ..self }
    }

    /// Whoever does such things does this one, and says how that went.
    async fn obey(&self, deed: Deed) -> Result<Vec<u8>, String> {
        let orders = self.orders.as_ref().ok_or("nothing is done by this socket")?;
        let done = deed.word().to_owned();
        let (answer, answered) = oneshot::channel();
        // Fails where it is ending.
        let _ = orders.send(Asked { deed, answer });
        let result = answered.await.map_err(|_| "it is ending".to_owned())??;
        json(&Done { done, result })
    }

    /// Whoever has them counted tells of the last second.
    async fn tell_flows(&self) -> Result<Vec<u8>, String> {
        let questions = self.flows.as_ref().ok_or("it counts no flows")?;
        let (answer, answered) = oneshot::channel();
        // Fails where it is ending.
        let _ = questions.send(answer);
        json(&answered.await.map_err(|_| "it is ending".to_owned())?)
    }
}

impl Answer for Answering {
    type Request = Request;

    fn parse(line: &[u8]) -> Result<Request, serde_json::Error> {
        Request::parse(line)
    }

    async fn answer(&self, request: Request) -> Result<Vec<u8>, String> {
        match request {
            Request::Get(Document::Flows) => self.tell_flows().await,
            Request::Get(document) => self.documents.get(&document),
            Request::Do(deed) => self.obey(deed).await,
        }
    }
}

fn json(answer: &impl serde::Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(answer).map_err(|error| error.to_string())
}
