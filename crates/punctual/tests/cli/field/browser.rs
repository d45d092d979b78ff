//! The page of a run in a real browser: no requests, no errors, sorting and pointing work, every text is readable.

use crate::field::webdriver::Browser;
use crate::program::{machine, punctual};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Directory of the screenshots, which are kept for inspection.
fn pictures() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&target).expect("a directory for pictures");
    target
}

/// Page of a real run with a hostile title; the run is made once for all tests, below `target`.
fn page() -> &'static Path {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    PAGE.get_or_init(|| {
        let dir = pictures();
        let (plan, run) = (dir.join("plan.toml"), dir.join("run"));
        let _ = std::fs::remove_dir_all(&run);
        let title = "</title><script>window.pwned=1</script><img src=x onerror=window.pwned=2>";
        let text = format!(
            "title = \"{title}\"\nstudy = \"debian10-stock-vs-rt-2020\"\nrepetitions = 4\nduration = \"200ms\"\n\
             warm_up = \"0s\"\n[axes]\nload = [\"none\", \"cpu\"]\npolicy = [\"other\"]\nperiod = [\"1ms\", \"250us\"]\n\
             [require]\nmax = \"10s\"\n"
        );
        std::fs::write(&plan, text).expect("a plan");
        let said = {
            let _machine = machine();
            punctual(&format!("run {} --wait --out {}", plan.display(), run.display()))
        };
        let page = run.join("report.html");
        assert!(page.is_file() && said.stderr.contains(&format!("report: {}\n", page.display())), "{said:?}");
        page
    })
}

/// Opens the page in a browser; prints the reason and returns `None` where no browser is available.
fn opened() -> Option<Browser> {
    let browser = match Browser::start() {
        Ok(browser) => browser,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return None;
        }
    };
    browser.look(1280, 900, false);
    browser.open(page());
    Some(browser)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

#[test]
#[ignore = "field: a browser"]
fn nothing_is_loaded_and_foreign_text_stays_text() {
    let Some(browser) = opened() else { return };
    assert_eq!(browser.run("return window.pwned || 0"), 0);
    assert_eq!(browser.run("return document.images.length"), 0);
    assert!(browser.run("return document.title").as_str().unwrap().starts_with("</title><script>"));
    assert_eq!(browser.log("browser"), Vec::<Value>::new(), "console errors and warnings");
    let own = format!("file://{}", page().display());
    for entry in browser.log("performance") {
        let message: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
        let url = &message["message"]["params"]["request"]["url"];
        if let Some(url) = url.as_str() {
            assert!(url == own || url.starts_with("data:") || url == "about:blank", "the page asked for {url}");
        }
    }
}

#[test]
#[ignore = "field: a browser"]
fn a_click_sorts_and_another_turns_it_round() {
    let Some(browser) = opened() else { return };
    let order = |browser: &Browser| {
        browser
            .run("return [...document.querySelectorAll('.matrix tbody tr')].map(row => row.querySelector('td').firstChild.data)")
    };
    let in_ns = |text: &Value| {
        let text = text.as_str().unwrap();
        let (number, unit) = text.trim_start_matches("> ").rsplit_once(' ').unwrap();
        let factor = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)].into_iter().find(|(name, _)| *name == unit);
        number.replace(' ', "").parse::<f64>().unwrap() * factor.unwrap().1
    };
    // The maximum is the first column of numbers.
    let click = |browser: &Browser| browser.run("document.querySelector('.matrix thead th.n button').click()");
    let plan_order = order(&browser);
    click(&browser);
    let falling: Vec<f64> = order(&browser).as_array().unwrap().iter().map(in_ns).collect();
    assert!(falling.len() == 4 && falling.is_sorted_by(|a, b| a >= b), "{falling:?}");
    assert_eq!(browser.run("return document.querySelector('[aria-sort]').ariaSort"), "descending");
    click(&browser);
    let rising: Vec<f64> = order(&browser).as_array().unwrap().iter().map(in_ns).collect();
    assert!(rising.is_sorted(), "{rising:?}");
    // Sorting by name keeps the same cells, in whatever order.
    browser.run("document.querySelector('.matrix thead button').click()");
    assert_eq!(browser.run("return document.querySelectorAll('.matrix tbody tr').length"), 4);
    assert_eq!(plan_order.as_array().unwrap().len(), 4);
    // Every name links to an existing section.
    let missing =
        "return [...document.querySelectorAll('.matrix a')].filter(a => !document.querySelector(a.hash)).length";
    assert_eq!(browser.run(missing), 0);
}

#[test]
#[ignore = "field: a browser"]
fn pointing_shows_what_is_there() {
    let Some(browser) = opened() else { return };
    for kind in ["h", "n", "s", "c"] {
        let script = format!(
            "const svg = document.querySelector('svg.plot[data-kind={kind}]'); svg.scrollIntoView({{block: 'center', behavior: 'instant'}});\
             const box = svg.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]"
        );
        let place = browser.run(&script);
        let [x, y, width, height] = [0, 1, 2, 3].map(|index| number(&place[index]));
        // Scrolling hides the values, and a line does not cover the whole plot: at least one point along the plot shows
        // values.
        let texts: Vec<String> = (1..20)
            .map(|step| {
                browser.wait_for("requestAnimationFrame(() => requestAnimationFrame(done))");
                browser.point(x + width * f64::from(step) / 20.0, y + height * 0.5);
                let tip = "const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent";
                browser.run(tip).as_str().unwrap().to_owned()
            })
            .collect();
        // The first histogram is of the threads of a study.
        let is_name = |text: &String| match kind {
            "h" => text.contains("CPU 0"),
            _ => text.contains("/other/1ms") || text.contains("/other/250us"),
        };
        assert!(texts.iter().any(is_name), "{kind}: {texts:?}");
    }
    // The keyboard works as well, and Escape hides the values.
    browser.run("document.querySelector('svg.heat, svg.plot').focus({ preventScroll: true })");
    browser.wait_for("requestAnimationFrame(() => requestAnimationFrame(done))");
    browser.press("ArrowRight");
    assert_eq!(browser.run("return document.getElementById('tip').hidden"), false);
    browser.press("Escape");
    assert_eq!(browser.run("return document.getElementById('tip').hidden"), true);
}

/// Script that lists every text whose contrast with its background is below the required minimum (WCAG 2.2, 1.4.3).
const UNREADABLE: &str = r"
const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const over = ([r, g, b, a], under) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a)).concat(1);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ground = (element) => {
  if (!element) return [255, 255, 255, 1];
  const own = parse(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own : over(own, ground(element.parentElement));
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || ['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
  const style = getComputedStyle(element), under = ground(element);
  let ink = parse(element.closest('svg') ? style.fill : style.color);
  ink[3] *= Number(style.opacity);
  const [a, b] = [light(over(ink, under)), light(under)].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  if (contrast < 4.5) found.push(`${contrast.toFixed(2)} ${element.tagName}.${element.className.baseVal ?? element.className}: ${walker.currentNode.data.trim().slice(0, 40)}`);
}
for (const line of document.querySelectorAll('.key path, path.tick, path.limit')) {
  const [a, b] = [light(parse(getComputedStyle(line).stroke)), light(ground(line.closest('ul, section, body')))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  if (contrast < 3) found.push(`${contrast.toFixed(2)} line ${line.className.baseVal}`);
}
return found";

#[test]
#[ignore = "field: a browser"]
fn everything_can_be_read_in_both_themes_and_at_every_width() {
    let Some(browser) = opened() else { return };
    let pictures = pictures();
    for (theme, is_dark) in [("light", false), ("dark", true)] {
        for (device, width, height) in [("desktop", 1280, 2600), ("phone", 360, 2600)] {
            browser.look(width, height, is_dark);
            assert_eq!(browser.run(UNREADABLE), Value::Array(Vec::new()), "{theme} {device}");
            let wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.run(wider), 0, "the page is wider than a {device}");
            browser.run("scrollTo(0, 0)");
            browser.picture(&pictures.join(format!("{theme}-{device}.png")));
        }
    }
    println!("pictures of the page: {}", pictures.display());
}

#[test]
#[ignore = "field: a browser"]
fn without_its_script_the_page_is_whole() {
    let Some(browser) = opened() else { return };
    browser.devtools("Emulation.setScriptExecutionDisabled", &serde_json::json!({ "value": true }));
    browser.open(page());
    browser.devtools("Emulation.setScriptExecutionDisabled", &serde_json::json!({ "value": false }));
    assert_eq!(browser.run("return document.querySelectorAll('.matrix button').length"), 0, "its script did not run");
    assert_eq!(browser.run("return document.querySelectorAll('.matrix tbody tr').length"), 4);
    let drawn = "return [...document.querySelectorAll('svg.plot')].filter(svg => svg.getBoundingClientRect().height > 100).length";
    assert!(number(&browser.run(drawn)) >= 4.0 * 2.0);
}

/// Pages of every kind: short runs of this machine, made once.
fn pages() -> Vec<(&'static str, PathBuf)> {
    let dir = pictures().join("pages");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory for pages");
    let at = |name: &str| dir.join(name).display().to_string();
    let scratch = crate::program::Scratch::new("pages");
    let servo = crate::servo::Program::Servo.compiled(&scratch, &[]);
    let (short, tuned) = ("--duration 200ms --wait --out", "--quick --cpus 0 --knob timer_slack=50us,1ns");
    let made = [
        format!("run {short} {}", at("run")),
        format!("explain --policy other --load cpu --above 20us {short} {}", at("explain")),
        format!("watch --for 2s --wait --out {} -- {}", at("watch"), servo.display()),
        format!("tune {tuned} --wait --out {}", at("tune")),
        format!("report {0} {0} --output {1}", at("run"), at("compare.html")),
        format!("store add {} --store {}", at("run"), at("store")),
        format!("history --store {} --format html --output {}", at("store"), at("history.html")),
    ];
    {
        let _machine = machine();
        // The status of an undecided experiment is not 0.
        made.iter().for_each(|words| eprintln!("{words}: {}", punctual(words).stderr));
    }
    let report = |name: &'static str| (name, dir.join(name).join("report.html"));
    let named = |name: &'static str| (name, dir.join(format!("{name}.html")));
    let mut pages: Vec<_> = ["run", "explain", "watch", "tune"].map(report).into();
    pages.extend(["compare", "history"].map(named));
    pages.push(("study", page().to_owned()));
    pages
}

#[test]
#[ignore = "field: a browser"]
fn the_answer_is_seen_first_and_four_cells_are_five_sheets() {
    let Some(browser) = opened() else { return };
    for (name, page) in pages() {
        assert!(page.is_file(), "{name}: {}", page.display());
        for (width, height) in [(1280, 720), (390, 844)] {
            browser.look(width, height, false);
            browser.open(&page);
            let bottom = browser.run("return document.querySelector('main .answer').getBoundingClientRect().bottom");
            assert!(number(&bottom) < 600.0, "{name} at {width}: {bottom}");
            let wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.run(wider), 0, "{name} is wider than {width}");
            let facts = browser.run("return document.querySelector('.facts').textContent");
            assert!(
                facts.as_str().is_some_and(|facts| facts.contains("Linux ") && facts.contains(" UTC")),
                "{name}: {facts}"
            );
        }
        let sheets = browser.sheets();
        assert!((1..=5).contains(&sheets), "{name}: {sheets} sheets of letter");
    }
}

#[test]
#[ignore = "field: a browser"]
fn each_picture_is_saved_as_it_is_seen() {
    let Some(browser) = opened() else { return };
    browser.run(
        "HTMLAnchorElement.prototype.click = function () { (window.saved ||= []).push([this.download, this.href]); }",
    );
    let figures = number(&browser.run("return document.querySelectorAll('figure > svg').length"));
    browser.run("for (const made of document.querySelectorAll('figcaption .tool[title]')) made.click()");
    let saved = browser.wait_for(&format!(
        "const wait = () => (window.saved || []).length === {} ? done(window.saved) : setTimeout(wait, 50); wait()",
        2.0 * figures
    ));
    for one in saved.as_array().expect("names and addresses") {
        let (name, href) = (one[0].as_str().unwrap(), one[1].as_str().unwrap());
        let kind = if name.ends_with(".svg") { "data:image/svg+xml" } else { "data:image/png;base64," };
        assert!(href.starts_with(kind) && href.len() > 2_000 && !href.contains("var("), "{name}: {:.200}", href);
    }
    assert_eq!(browser.log("browser"), Vec::<Value>::new(), "console errors and warnings");
}
