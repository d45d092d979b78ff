//! `punctual store` and `punctual history` with a real PostgreSQL server, which may go away.

use crate::places::{Places, go_on};
use crate::program::{
    MARK, ProgramOutput, Scratch, Start, command, finish, is_installed, is_root, mark, punctual, run, skip_unless,
};
use crate::pure::store::{nights, unwrapped};
use punctual_sys::testing::comes_true;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of an own database directory, at a socket only.
struct Server {
    child: Child,
    dir: PathBuf,
}

/// A program of PostgreSQL, as a normal user: it refuses root.
fn program(name: &str) -> Command {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = installed.map(|version| version.path().join("bin").join(name)).find(|path| path.exists());
    let path = found.unwrap_or_else(|| name.into());
    if !is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(path);
    command
}

fn is_available() -> bool {
    Path::new("/usr/lib/postgresql").exists() || is_installed("initdb", "postgresql")
}

impl Server {
    fn start(scratch: &Scratch) -> Server {
        let dir = scratch.path("postgres");
        std::fs::create_dir_all(&dir).unwrap();
        if is_root() {
            assert_eq!(run(Command::new("chown").args(["nobody"]).arg(&dir)).status, 0);
            crate::program::set_mode(scratch.dir(), 0o755);
        }
        let data = dir.join("data");
        let mut initdb = program("initdb");
        initdb.args(["--auth=trust", "--username=lab", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"]).arg(&data);
        let made = run(initdb.current_dir(&dir).env("LC_ALL", "C"));
        assert_eq!(made.status, 0, "{made:?}");
        let mut server = Server { child: Server::spawn(&dir), dir };
        server.wait();
        server
    }

    fn spawn(dir: &Path) -> Child {
        let mut postgres = program("postgres");
        postgres.arg("-D").arg(dir.join("data")).args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"]).arg(dir);
        postgres.current_dir(dir).env("LC_ALL", "C").env(MARK, mark()).stdin(Stdio::null()).start_silent()
    }

    fn wait(&mut self) {
        let asked = format!("store list --store {}", self.url());
        let mut is_open = false;
        comes_true(|| {
            is_open = !punctual(&asked).stderr.contains("cannot open");
            is_open || self.child.try_wait().unwrap().is_some()
        });
        assert!(is_open, "{:?}", punctual(&asked));
    }

    fn url(&self) -> String {
        format!("postgresql:///postgres?host={}&user=lab", self.dir.display())
    }

    fn of(&self, words: &str) -> ProgramOutput {
        punctual(&format!("{words} --store {}", self.url()))
    }

    fn number(&self, sql: &str) -> i64 {
        let answer = run(command("store query").arg(sql).args(["--format", "json", "--store", &self.url()]));
        answer.expect_success().json()["rows"][0][0].as_i64().unwrap()
    }

    /// Stops the server at once, as a crash would.
    fn stop(&mut self) {
        let _ = punctual_sys::process::signal(self.child.id(), libc::SIGQUIT);
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
#[ignore = "field: PostgreSQL"]
fn a_server_answers_as_a_file_does() {
    skip_unless!(is_available());
    let scratch = Scratch::new("postgres");
    let server = Server::start(&scratch);
    server.of("history").expect_error(
        "no store at postgresql:///postgres: `punctual store add RUN` makes it; name another with --store",
    );
    let runs = nights(&scratch, 45, 1.5);
    let file = scratch.path("lab.sqlite").display().to_string();
    let (first, second) =
        (server.of(&format!("store add {runs}")), punctual(&format!("store add {runs} --store {file}")));
    assert_eq!((first.status, first.stdout), (0, second.stdout), "{}", first.stderr);
    assert!(server.of(&format!("store add {runs}/0007")).expect_success().stdout.ends_with("/0007: known\n"));
    for words in ["history --format json", "history", "history --format junit", "store list --format csv"] {
        let (server, file) = (server.of(words), punctual(&format!("{words} --store {file}")));
        assert_eq!((server.status, &server.stdout), (file.status, &file.stdout), "{words}: {server:?}");
    }
    let check = server.of("history --cell none/");
    assert!(check.status == 2 && unwrapped(&check).contains("coincides with kernel: 6.1-rt to 6.12-rt"), "{check:?}");
    let baseline = punctual(&format!("check {runs}/0044 --baseline store:{}", server.url()));
    assert_eq!(baseline.status, 0, "it is compared with the 14 runs since the step: {baseline:?}");
    assert_eq!(server.number("SELECT count(*)::bigint FROM block"), 180);
    let query = |sql: &str| run(command("store query").arg(sql).args(["--format", "csv", "--store", &server.url()]));
    let many = query("SELECT n FROM generate_series(1, 5000) AS many(n)").expect_success().stdout;
    assert!(many.lines().skip(1).map(str::parse).eq((1..=5000).map(Ok::<u32, _>)), "{many}");
    assert_eq!(query("SHOW transaction_read_only").expect_success().stdout, "transaction_read_only\non\n");
    for sql in ["DELETE FROM run", "SELECT 1; DELETE FROM run", "COMMIT", "CREATE TABLE t (x int)", "SELEKT"] {
        let answer = run(command("store query").arg(sql).args(["--store", &server.url()]));
        assert!(answer.stderr.lines().count() <= 1, "{sql}: {answer:?}");
        assert_eq!(server.number("SELECT count(*)::bigint FROM run"), 45, "{sql}");
    }
}

#[test]
#[ignore = "field: PostgreSQL"]
fn a_server_that_goes_away_leaves_whole_runs() {
    skip_unless!(is_available());
    let scratch = Scratch::new("postgres-gone");
    let mut server = Server::start(&scratch);
    let runs = nights(&scratch, 40, 1.0);
    server.of(&format!("store add {runs}/0000")).expect_success();
    let places = Places::new();
    for place in ["addition-begun", "addition-half@7", "addition-put@11", "addition-kept@23"] {
        let mut adding = command(&format!("store add {runs} --store {}", server.url()));
        let mut adding = places.act(&mut adding, &format!("stop:{place}")).start_piped();
        let stopped = places.stopped(&mut adding, place);
        server.stop();
        go_on(stopped);
        let ended = finish(adding);
        assert!(ended.status == 0 || ended.status == 1 && ended.stderr.lines().count() == 1, "{ended:?}");
        let gone = server.of("history");
        assert!(
            gone.status == 1 && gone.stderr.starts_with("punctual: cannot open postgresql:///postgres: "),
            "{gone:?}"
        );
        server.child = Server::spawn(&server.dir);
        server.wait();
        let torn = "SELECT count(*)::bigint FROM run r WHERE (SELECT count(*) FROM block b WHERE b.run_id = r.id) <> 4";
        assert_eq!(server.number(torn), 0);
    }
    server.of(&format!("store add {runs}")).expect_success();
    assert_eq!(server.number("SELECT count(*)::bigint FROM run"), 40);
    let both =
        [(); 2].map(|()| command(&format!("store add {runs} --store {}", server.url())).start_piped()).map(finish);
    assert!(both.iter().all(|one| one.status == 0), "{both:?}");
}
