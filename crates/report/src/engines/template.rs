//! Templates, so that the files of an engine are readable as files.

/// The template with each `<<NAME>>` replaced by the last value of that name. Values are not searched again. Lines from
/// `<<?NAME>>` to `<<.>>` are left out where the value is empty, those from `<<!NAME>>` where it is not.
pub(super) fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let value = |name: &str| values.iter().rfind(|(known, _)| *known == name).map(|(_, value)| *value);
    let is_set = |name: &str| value(name).is_some_and(|value| !value.is_empty());
    let (mut text, mut is_shown) = (String::with_capacity(template.len()), true);
    for line in template.split_inclusive('\n') {
        let mark = line.strip_prefix("<<").and_then(|rest| rest.strip_suffix(">>\n")).unwrap_or_default();
        match mark.split_at_checked(1) {
            Some((".", "")) => is_shown = true,
            Some(("?", name)) => is_shown = is_set(name),
            Some(("!", name)) => is_shown = !is_set(name),
            _ if is_shown => fill(&mut text, line, value),
            _ => {}
        }
    }
    text
}

fn fill<'a>(text: &mut String, mut rest: &str, value: impl Fn(&str) -> Option<&'a str>) {
    while let Some((before, after)) = rest.split_once("<<") {
        text.push_str(before);
        let place = after.split_once(">>").and_then(|(name, behind)| Some((value(name)?, behind)));
        let (value, behind) = place.unwrap_or(("<<", after));
        text.push_str(value);
        rest = behind;
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_their_places_and_are_not_searched() {
        let values = [("A", "x"), ("A", "<<B>>"), ("B", "x"), ("EMPTY", "")];
        for (template, expected) in [
            ("1 <<A>> 2 <<B>> cat <<EOF <<C>>", "1 <<B>> 2 x cat <<EOF <<C>>"),
            ("<<A>>\n<<EMPTY>>\n", "<<B>>\n\n"),
            ("<<?A>>\n1\n<<.>>\n<<!A>>\n2\n<<.>>\n3\n", "1\n3\n"),
            ("<<?EMPTY>>\n1\n<<.>>\n<<!EMPTY>>\n<<B>>\n<<.>>\n", "x\n"),
        ] {
            assert_eq!(filled(template, &values), expected);
        }
    }
}
