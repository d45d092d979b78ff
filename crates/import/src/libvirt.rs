//! Settings of a guest's threads in a domain of libvirt (formatdomain, "CPU Tuning").

use super::{ImportError, ParseError};
use punctual_host::file;
use punctual_model::{CpuSet, GuestThreadKind, GuestThreads, LabKernel, Policy};
use roxmltree::{Document, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Size limit of a domain's file, bytes: they have some tens of KiB.
const MAX_BYTES: u64 = 1 << 20;

/// The part of a domain that guests here can have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Domain {
    /// Number of its vCPUs; `None` if it does not say.
    pub vcpus: Option<u32>,
    /// Scheduling of its threads.
    pub threads: GuestThreads,
    /// What is not taken over, in the order of the file; empty if all is.
    pub not_taken: Vec<String>,
}

/// Reads the file of a domain, as `virsh dumpxml` writes it. Errors: if it cannot be read or is larger than 1 MiB, is
/// not a domain, or has a setting that is invalid.
pub fn libvirt_domain(path: &Path) -> Result<Domain, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let (_, bytes) = file::read_named(path, MAX_BYTES).map_err(io)?;
    let text = String::from_utf8(bytes).map_err(|_| ParseError::of_file("not UTF-8"));
    text.and_then(|text| domain(&text)).map_err(|flaw| flaw.of(path))
}

fn domain(text: &str) -> Result<Domain, ParseError> {
    let document = super::xml::document(text)?;
    let root = document.root_element();
    if root.tag_name().name() != "domain" {
        let found = root.tag_name().name();
        return Err(ParseError::at(
            line(&document, root),
            format!("invalid root element <{found}>: expected <domain>"),
        ));
    }
    let child = |name: &'static str| root.children().find(move |node| node.has_tag_name(name));
    let mut reader = Reader { document: &document, domain: Domain::default(), pinned: BTreeMap::new() };
    if let Some(vcpu) = child("vcpu") {
        reader.vcpus(vcpu)?;
    }
    if let Some(tune) = child("cputune") {
        tune.children().filter(Node::is_element).try_for_each(|node| reader.setting(node))?;
    }
    Ok(reader.domain)
}

struct Reader<'a, 'text> {
    document: &'a Document<'text>,
    domain: Domain,
    /// Different sets of CPUs of single threads.
    pinned: BTreeMap<GuestThreadKind, BTreeSet<String>>,
}

impl Reader<'_, '_> {
    fn vcpus(&mut self, node: Node<'_, '_>) -> Result<(), ParseError> {
        let text = node.text().unwrap_or_default().trim();
        let number = text.parse().ok().filter(|number| (1..=LabKernel::MAX_CPUS).contains(number));
        let most = LabKernel::MAX_CPUS;
        let number =
            number.ok_or_else(|| self.at(node, format!("invalid number of vCPUs `{text}`: expected 1 to {most}")))?;
        self.domain.vcpus = Some(number);
        // The default of all threads that are not pinned.
        if let Some(cpus) = node.attribute("cpuset") {
            let cpus = self.cpus(node, cpus)?;
            self.domain.threads.vcpu.cpus = Some(cpus.clone());
            self.domain.threads.emulator.cpus = Some(cpus);
        }
        Ok(())
    }

    fn setting(&mut self, node: Node<'_, '_>) -> Result<(), ParseError> {
        let name = node.tag_name().name();
        match name {
            "vcpupin" => self.pin(node, GuestThreadKind::Vcpu)?,
            "iothreadpin" => self.pin(node, GuestThreadKind::Io)?,
            "emulatorpin" => {
                let cpus = self.cpus(node, self.attribute(node, "cpuset")?)?;
                self.domain.threads.of_mut(GuestThreadKind::Emulator).cpus = Some(cpus);
            }
            "vcpusched" => {
                let (vcpus, policy) = (self.attribute(node, "vcpus")?.to_owned(), self.policy(node)?);
                let vcpus = self.cpus(node, &vcpus)?;
                let all = self.domain.vcpus.unwrap_or(1);
                if !(0..all).all(|vcpu| vcpus.iter().any(|named| named == vcpu)) {
                    self.not_taken("vcpusched of some vCPUs: all have this policy");
                }
                self.schedule(node, GuestThreadKind::Vcpu, policy)?;
            }
            "iothreadsched" => self.schedule(node, GuestThreadKind::Io, self.policy(node)?)?,
            "emulatorsched" => self.domain.threads.of_mut(GuestThreadKind::Emulator).policy = Some(self.policy(node)?),
            other => self.not_taken(other),
        }
        Ok(())
    }

    /// Takes over the CPUs of one thread; threads of a kind share the CPUs of all.
    fn pin(&mut self, node: Node<'_, '_>, kind: GuestThreadKind) -> Result<(), ParseError> {
        let cpus = self.cpus(node, self.attribute(node, "cpuset")?)?;
        let pinned = self.pinned.entry(kind).or_default();
        pinned.insert(cpus.to_string());
        let differ = pinned.len() > 1;
        let settings = self.domain.threads.of_mut(kind);
        let before = settings.cpus.take().filter(|_| differ);
        settings.cpus = Some(before.iter().flat_map(CpuSet::iter).chain(cpus.iter()).collect());
        match kind {
            GuestThreadKind::Vcpu if differ => self.not_taken("vcpupin of each vCPU: all may use all of their CPUs"),
            GuestThreadKind::Io if differ => {
                self.not_taken("iothreadpin of each I/O thread: guests have one, with all of their CPUs");
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes over a policy, which threads of a kind have in common.
    fn schedule(&mut self, node: Node<'_, '_>, kind: GuestThreadKind, policy: Policy) -> Result<(), ParseError> {
        let settings = self.domain.threads.of_mut(kind);
        if let Some(before) = settings.policy.filter(|before| *before != policy) {
            let name = node.tag_name().name();
            let message =
                format!("unsupported: {name} {policy} after {before}: guests here have one {}_policy", kind.name());
            return Err(self.at(node, message));
        }
        settings.policy = Some(policy);
        Ok(())
    }

    fn not_taken(&mut self, what: &str) {
        if !self.domain.not_taken.iter().any(|known| known == what) {
            self.domain.not_taken.push(what.to_owned());
        }
    }

    fn attribute<'n>(&self, node: Node<'n, '_>, name: &str) -> Result<&'n str, ParseError> {
        let missing = || self.at(node, format!("<{}> has no attribute `{name}`", node.tag_name().name()));
        node.attribute(name).ok_or_else(missing)
    }

    fn policy(&self, node: Node<'_, '_>) -> Result<Policy, ParseError> {
        let scheduler = self.attribute(node, "scheduler")?;
        let text = match scheduler {
            "fifo" | "rr" => format!("{scheduler}:{}", self.attribute(node, "priority")?),
            "batch" | "idle" => scheduler.to_owned(),
            _ => {
                return Err(self.at(node, format!("invalid scheduler `{scheduler}`: expected batch, idle, fifo or rr")));
            }
        };
        text.parse().map_err(|err| self.at(node, format!("{err}")))
    }

    /// A list of CPUs; `^N` takes one out again.
    fn cpus(&self, node: Node<'_, '_>, text: &str) -> Result<CpuSet, ParseError> {
        let of = |text: &str| text.parse::<CpuSet>().map_err(|err| self.at(node, format!("{err}")));
        let mut cpus = CpuSet::default();
        for part in text.split(',').map(str::trim) {
            cpus = match part.strip_prefix('^') {
                Some(part) => cpus.minus(&of(part)?),
                None => cpus.iter().chain(of(part)?.iter()).collect(),
            };
        }
        if cpus.is_empty() {
            Err(self.at(node, format!("invalid CPUs `{text}`: expected CPUs, like 0,2-3")))
        } else {
            Ok(cpus)
        }
    }

    fn at(&self, node: Node<'_, '_>, message: String) -> ParseError {
        ParseError::at(line(self.document, node), message)
    }
}

fn line(document: &Document<'_>, node: Node<'_, '_>) -> usize {
    usize::try_from(document.text_pos_at(node.range().start).row).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As `virsh dumpxml` writes a domain.
    fn xml(vcpu: &str, tune: &str) -> String {
        format!(
            "<domain type='kvm' id='3' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n  <name>rt</name>\n  \
             <memory unit='KiB'>4194304</memory>\n  {vcpu}\n  <iothreads>1</iothreads>\n  <cputune>\n{tune}\n  </cputune>\n  \
             <os>\n    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>\n  </os>\n  <devices>\n    \
             <emulator>/usr/bin/qemu-system-x86_64</emulator>\n  </devices>\n</domain>\n"
        )
    }

    fn words(vcpu: &str, tune: &str) -> Result<(Option<u32>, String, Vec<String>), String> {
        let read = domain(&xml(vcpu, tune)).map_err(|flaw| format!("{:?}: {}", flaw.line, flaw.reason))?;
        Ok((read.vcpus, read.threads.to_string(), read.not_taken))
    }

    #[test]
    fn settings_of_threads_are_taken_over_and_the_rest_is_named() {
        let tune = "    <vcpupin vcpu='0' cpuset='2-3'/>\n    <vcpupin vcpu='1' cpuset='2,3'/>\n    \
                    <emulatorpin cpuset='0-3,^2,^3'/>\n    <vcpusched vcpus='0-1' scheduler='fifo' priority='50'/>\n    \
                    <emulatorsched scheduler='rr' priority='10'/>\n    <quota>-1</quota>\n    \
                    <iothreadsched iothreads='1' scheduler='fifo' priority='49'/>\n    <quota>5</quota>\n    \
                    <iothreadpin iothread='1' cpuset='4'/>\n    <iothreadpin iothread='2' cpuset='5'/>";
        let expected =
            "vcpu_policy=fifo:50 vcpu_cpus=2-3 io_policy=fifo:49 io_cpus=4-5 emulator_policy=rr:10 emulator_cpus=0-1";
        let (vcpus, threads, not_taken) = words("<vcpu placement='static'>2</vcpu>", tune).unwrap();
        assert_eq!((vcpus, threads.as_str()), (Some(2), expected));
        let joined = "iothreadpin of each I/O thread: guests have one, with all of their CPUs";
        assert_eq!(not_taken, ["quota", joined]);
        let (_, threads, not_taken) = words("<vcpu cpuset='1-2'>2</vcpu>", "<shares>2048</shares>").unwrap();
        assert_eq!((threads.as_str(), not_taken), ("vcpu_cpus=1-2 emulator_cpus=1-2", vec!["shares".to_owned()]));
        let one_by_one = "<vcpupin vcpu='0' cpuset='2'/><vcpupin vcpu='1' cpuset='3'/>\
                          <vcpusched vcpus='0' scheduler='batch'/>";
        let (_, threads, not_taken) = words("<vcpu cpuset='0-7'>2</vcpu>", one_by_one).unwrap();
        assert_eq!(threads, "vcpu_policy=batch vcpu_cpus=2-3 emulator_cpus=0-7");
        assert_eq!(not_taken.len(), 2, "{not_taken:?}");
    }

    #[test]
    fn what_cannot_be_is_one_line_with_its_place() {
        for (tune, message) in [
            ("<vcpupin vcpu='0'/>", "Some(7): <vcpupin> has no attribute `cpuset`"),
            ("<emulatorpin cpuset='^0'/>", "Some(7): invalid CPUs `^0`"),
            ("<vcpusched vcpus='0' scheduler='deadline'/>", "Some(7): invalid scheduler `deadline`"),
            (
                "<iothreadsched iothreads='1' scheduler='idle'/><iothreadsched iothreads='2' scheduler='batch'/>",
                "Some(7): unsupported: iothreadsched batch after idle: guests here have one io_policy",
            ),
            ("<emulatorsched scheduler='fifo'/>", "Some(7): <emulatorsched> has no attribute `priority`"),
            ("<emulatorsched scheduler='fifo' priority='100'/>", "Some(7): invalid policy `fifo:100`"),
            ("<emulatorsched", "Some("),
        ] {
            let said = words("<vcpu>1</vcpu>", tune).unwrap_err();
            assert!(said.starts_with(message), "{said}");
        }
        assert!(words("<vcpu>many</vcpu>", "").unwrap_err().contains("invalid number of vCPUs `many`"));
        let bomb = "<!DOCTYPE domain [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><domain>&b;</domain>";
        assert!(domain(bomb).unwrap_err().reason.starts_with("invalid XML: "), "{:?}", domain(bomb));
        let deep = "<domain>".to_owned() + &"<a>".repeat(300_000);
        assert!(domain(&deep).unwrap_err().reason.contains("nested"), "a stack of its size is not used");
        assert!(domain("<rteval/>").unwrap_err().reason.starts_with("invalid root element <rteval>"));
    }

    proptest! {
        /// Whatever is in a file, it gives a domain or one line.
        #[test]
        fn no_file_is_fatal(cut in 0usize..2000, at in 0usize..2000, insert in "\\PC{0,12}") {
            let text = xml("<vcpu>2</vcpu>", "<vcpupin vcpu='0' cpuset='2-3'/><vcpusched vcpus='0-1' scheduler='fifo' priority='1'/>");
            let mut letters: Vec<char> = text.chars().collect();
            letters.truncate(letters.len().saturating_sub(cut / 20).max(1));
            let at = at % letters.len();
            letters.splice(at..at, insert.chars());
            let text: String = letters.into_iter().collect();
            if let Err(flaw) = domain(&text) {
                prop_assert!(!flaw.reason.contains('\n'), "{}", flaw.reason);
            }
        }
    }
}
