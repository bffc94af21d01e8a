//! Hawser: two portals on the stage.
//!
//! 1. Options become lines of the portals' configurations; what they mean is for the portals to judge.
//! 2. Both start, and must see every link that is up become an active path; the others join when they come.
//! 3. Without a LAN applications use the devices' own addresses.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_portal::api::Status;
use toml::{Table, Value};

use super::links::{Choice, device, has_lan, tun_ends};
use super::{Contender, ContenderPlan, Down, LabError, Offer, Options, Program, Programs, Stage, Transport};
use crate::portals::{Browser, Portals, Site, WATCHED, link_section};
use crate::scenario::TunnelEnd;

/// Options that are keys of `[traffic]`, with an underscore for a hyphen.
const TRAFFIC: [&str; 5] = ["scheduler", "congestion", "tcp-congestion", "protection", "cipher"];
/// What `watched` may be: who looks at the local portal has its browser on this machine, or on another.
const WATCHERS: [(&str, Option<Browser>); 3] =
    [("off", None), ("here", Some(Browser::Here)), ("elsewhere", Some(Browser::Elsewhere))];

/// The portals at work, and where. Shared with what happens to them, until the contender goes down; ended on drop.
#[derive(Debug)]
pub struct Running {
    portals: Mutex<Option<Portals>>,
    /// The remote one's public key.
    pub(crate) remote_key: [u8; 32],
}

impl Running {
    /// Starts the portal of an end, as it was started first; does not wait until it works. It ends with the calling
    /// thread.
    pub(crate) fn start(&self, end: TunnelEnd) -> Result<(), LabError> {
        self.lock().as_mut().map_or(Ok(()), |portals| portals.start_again(end))
    }

    /// What both say: local, remote; none of one that does not answer.
    pub(crate) fn statuses(&self) -> [Option<Status>; 2] {
        self.lock().as_ref().map_or([None, None], Portals::statuses)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Portals>> {
        self.portals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the options say of two portals. Plain data.
#[derive(Debug)]
struct Hawser {
    /// This executable, or another.
    program: PathBuf,
    /// The only link it goes by, where it is not all of them.
    choice: Choice,
    /// Of all links, or of those named.
    transport: Option<Value>,
    /// More keys of links, by their names.
    links: Table,
    /// More sections, of both portals.
    more: String,
    /// Where the browser is whose page, beside a terminal and a scraper, looks at the local portal; none where nobody
    /// looks.
    watched: Option<Browser>,
}

pub(super) fn make(plan: &ContenderPlan, programs: &Programs) -> Result<Contender, LabError> {
    let hawser = Hawser::parse(plan, programs)?;
    Ok(Box::new(move |stage: &Stage| hawser.up(stage)))
}

impl Hawser {
    /// Step 1.
    fn parse(plan: &ContenderPlan, programs: &Programs) -> Result<Self, LabError> {
        let mut options = Options::of_contender(plan);
        let choice = Choice::parse(plan, &mut options)?;
        let program = options.path("program")?.unwrap_or_else(|| programs.hawser.clone());
        let transport = options.take("transport");
        if !matches!(transport, None | Some(Value::String(_) | Value::Table(_))) {
            return Err(options.fault("transport is neither a string nor a table of links"));
        }
        let links = options.table("links")?;
        let mut more = "[traffic]\n".to_owned();
        for option in TRAFFIC {
            if let Some(value) = options.string(option)? {
                more += &format!("{} = {}\n", option.replace('-', "_"), Value::String(value));
            }
        }
        more += &options.string("config")?.unwrap_or_default();
        if options.word("fec", &["off", "auto"])? == "auto" {
            more += "\n[[rule]]\nfec = \"auto\"\n";
        }
        let watched = options.choice("watched", &WATCHERS, None)?;
        if watched.is_some() {
            more += WATCHED;
        }
        options.finish()?;
        Ok(Self { program, choice, transport, links, more, watched })
    }

    /// The links it goes by, by their places.
    fn places(&self, stage: &Stage) -> Result<Vec<usize>, LabError> {
        match self.choice.link {
            Some(_) => Ok(vec![self.choice.place(stage)?]),
            None => Ok((0..stage.links.len()).collect()),
        }
    }

    fn transport(&self, link: &str) -> &str {
        match &self.transport {
            Some(Value::String(all)) => all,
            Some(Value::Table(some)) => some.get(link).and_then(Value::as_str).unwrap_or("udp"),
            _ => "udp",
        }
    }

    /// A section for each link.
    fn sections(&self, links: &[(&str, u16)]) -> Result<String, LabError> {
        let mut sections = String::new();
        for &(link, metric) in links {
            let mut lines = format!("metric = {metric}\n");
            if let Some(more) = self.links.get(link) {
                let fault = |error| format!("links.{link} is no table of keys: {error}");
                let option = |error| LabError::refused(format!("set up {}", self.choice.contender), fault(error));
                lines += &toml::to_string(more).map_err(option)?;
            }
            sections += &link_section(link, self.transport(link), &lines);
        }
        let named = self.links.keys().chain(self.transport.iter().filter_map(Value::as_table).flat_map(Table::keys));
        for stranger in named.filter(|name| links.iter().all(|(link, _)| link != name)) {
            // Cases choose among a scenario's links, and the contender is one for all of them.
            let contender = &self.choice.contender;
            tracing::info!(contender, link = stranger, "this case does not have a link with settings");
        }
        Ok(sections)
    }

    /// Steps 2 and 3.
    fn up(&self, stage: &Stage) -> Result<(Offer, Down), LabError> {
        let program = &self.program;
        if !program.exists() {
            return Err(LabError::missing(program.display().to_string(), "cargo build --release -p hawser"));
        }
        let places = self.places(stage)?;
        let link = |place: &usize| (stage.links[*place].name.as_str(), stage.links[*place].metric);
        let links: Vec<_> = places.iter().map(link).collect();
        let mut transports: Vec<_> = links.iter().map(|(name, _)| self.transport(name).to_owned()).collect();
        transports.sort();
        transports.dedup();
        let behind = |address: IpAddr| if has_lan(stage) { vec![address.into()] } else { Vec::new() };
        let up = places.iter().filter(|place| stage.is_up(**place)).count();
        let site = Site {
            transports,
            tun: [0, 1].map(|end| device(end).to_vec()),
            behind: [behind(stage.hosts.client), behind(stage.hosts.server)],
            more: &self.more,
            ..Site::plain(stage.endpoint, self.sections(&links)?, up)
        };
        let mut portals = Portals::join(program, [&stage.local, &stage.remote], &site)?;
        if let Some(browser) = self.watched {
            portals.watch(browser)?;
        }
        let programs = portals.processes().into_iter().zip(["local", "remote"]);
        let programs = programs.map(|(process, role)| Program { role, pid: process.pid() }).collect();
        let remote_key = *portals.remote_key.as_bytes();
        let running = Arc::new(Running { portals: Mutex::new(Some(portals)), remote_key });
        let ends = if has_lan(stage) { stage.hosts } else { tun_ends(stage.inner) };
        let offer = Offer { ends, socket: Transport::Tcp, programs, portals: Some(Arc::clone(&running)) };
        let down: Down = Box::new(move |_: &Stage| {
            // Whoever shares them. Told to end, they undo what they set.
            let portals = running.lock().take();
            drop(portals);
            Ok(())
        });
        Ok((offer, down))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::tests::{plan, programs};

    fn settings(options: &str) -> Hawser {
        Hawser::parse(&plan("hawser", options), &programs()).expect("understood")
    }

    #[test]
    fn options_become_lines_of_the_configuration() {
        let settings = settings(
            "transport = { wifi = \"tcp\" }\nscheduler = \"redundant\"\ntcp-congestion = \"cubic\"\nfec = \"auto\"\n\
             config = \"[gateway]\"\n[links.wifi]\ntls = true",
        );
        assert_eq!(
            settings.more,
            "[traffic]\nscheduler = \"redundant\"\ntcp_congestion = \"cubic\"\n[gateway]\n[[rule]]\nfec = \"auto\"\n"
        );
        let sections = settings.sections(&[("wifi", 1), ("eth", 0)]).expect("all links are there");
        assert_eq!(
            sections,
            "[[link]]\nname = \"wifi\"\ninterface = \"wifi\"\ntransport = \"tcp\"\nmetric = 1\ntls = true\n\n\
             [[link]]\nname = \"eth\"\ninterface = \"eth\"\ntransport = \"udp\"\nmetric = 0\n\n"
        );
    }

    #[test]
    fn settings_of_a_link_that_this_case_does_not_have_change_nothing() {
        let two = settings("links = { lte = { weight = 2 } }");
        let sections = two.sections(&[("wifi", 0)]).expect("fine");
        assert!(sections.contains("wifi") && !sections.contains("weight"), "{sections}");
        let error = settings("links = { wifi = 2 }").sections(&[("wifi", 0)]).expect_err("2 is no table").to_string();
        assert!(error.starts_with("set up hawser: links.wifi is no table of keys"), "{error}");
    }
}
