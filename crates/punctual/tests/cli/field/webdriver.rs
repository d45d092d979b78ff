//! A headless browser, driven through chromedriver: the subset of W3C WebDriver that the page tests need.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Chromium and its driver; both are killed with this value.
#[derive(Debug)]
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts the browser; the error names the missing program.
    pub(crate) fn start() -> Result<Browser, String> {
        let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_there(name));
        let chromium = chromium.ok_or("needs chromium; apt-get install chromium")?;
        if !is_there("chromedriver") {
            return Err("needs chromedriver; apt-get install chromium-driver".to_owned());
        }
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let port =
            lines.find_map(|line| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok());
        // Its remaining output is drained, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Browser { driver, port: port.expect("chromedriver says its port"), session: String::new() };
        let options = json!({
            "binary": which(chromium),
            // Chromium has no sandbox as root, the user in containers; only pages of this program are shown.
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"],
        });
        let asked = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        }}});
        let session = browser.send("POST", "/session", &asked).unwrap_or_else(|err| panic!("no session: {err}"));
        browser.session = session["sessionId"].as_str().expect("a session has an id").to_owned();
        Ok(browser)
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&self, file: &Path) {
        self.ask("url", &json!({ "url": format!("file://{}", file.display()) }));
    }

    /// Value that a script returns by `return`.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.ask("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Value that a script passes to its last argument, `done`, within 30 s.
    pub(crate) fn wait_for(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {script}");
        self.ask("execute/async", &json!({ "script": script, "args": [] }))
    }

    /// A command of the Chrome DevTools Protocol.
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.ask("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// Sets the size of the window in CSS pixels, and the theme.
    pub(crate) fn look(&self, width: u32, height: u32, is_dark: bool) {
        let mobile = width < 600;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": if mobile { 2 } else { 1 }, "mobile": mobile });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        let theme = json!({ "name": "prefers-color-scheme", "value": if is_dark { "dark" } else { "light" } });
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": [theme] }));
    }

    /// Moves the pointer to a place in the window.
    pub(crate) fn point(&self, x: f64, y: f64) {
        let moved = json!({ "type": "mouseMoved", "x": x, "y": y });
        self.devtools("Input.dispatchMouseEvent", &moved);
    }

    /// Presses and releases a key.
    pub(crate) fn press(&self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.devtools("Input.dispatchKeyEvent", &json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Saves a screenshot of the window.
    pub(crate) fn picture(&self, file: &Path) {
        let png = self.devtools("Page.captureScreenshot", &json!({ "format": "png" }));
        std::fs::write(file, base64(png["data"].as_str().unwrap_or_default())).expect("a picture can be written");
    }

    /// Number of sheets of letter that the page takes in print.
    pub(crate) fn sheets(&self) -> usize {
        let printed =
            self.devtools("Page.printToPDF", &json!({ "paperWidth": 8.5, "paperHeight": 11, "printBackground": true }));
        let pdf = base64(printed["data"].as_str().unwrap_or_default());
        let text = String::from_utf8_lossy(&pdf);
        // The tree of pages is of the type "Pages".
        text.matches("/Type /Page").count() - text.matches("/Type /Pages").count()
    }

    /// Log entries since the last call: "browser" for the console, "performance" for requests.
    pub(crate) fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.ask("se/log", &json!({ "type": kind }));
        entries.as_array().cloned().unwrap_or_default()
    }

    fn ask(&self, command: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{command}", self.session);
        self.send("POST", &path, body).unwrap_or_else(|err| panic!("{command}: {err}"))
    }

    /// Sends one request on its own connection.
    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let failed = |err: std::io::Error| err.to_string();
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(failed)?;
        stream.set_read_timeout(Some(Duration::from_secs(120))).map_err(failed)?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}",
            self.port
        );
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line).map_err(failed)? > 2 {
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).map_err(failed)?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|err| err.to_string())?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn is_there(program: &str) -> bool {
    !which(program).is_empty()
}

/// The path of a program; empty without one.
fn which(program: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.map(|path| path.display().to_string()).unwrap_or_default()
}

/// The bytes of a text in base 64 (RFC 4648).
fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values: Vec<u32> = text.bytes().filter_map(value).map(u32::from).collect();
    let bytes = |four: &[u32]| {
        let bits = four.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    values.chunks(4).flat_map(bytes).collect()
}
