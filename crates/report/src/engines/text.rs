//! Text with named places, so that the files of an engine are readable in the source.

/// The template with each `<<NAME>>` replaced by its value. Values are not searched again.
pub(super) fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find("<<") {
        let (before, after) = rest.split_at(start);
        text.push_str(before);
        let value = after[2..].split_once(">>").and_then(|(name, behind)| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value, behind))
        });
        match value {
            Some((value, behind)) => {
                text.push_str(value);
                rest = behind;
            }
            None => {
                text.push_str("<<");
                rest = &after[2..];
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_their_places_and_are_not_searched() {
        let values = [("A", "<<B>>"), ("B", "x")];
        assert_eq!(filled("1 <<A>> 2 <<B>> cat <<EOF <<C>>", &values), "1 <<B>> 2 x cat <<EOF <<C>>");
    }
}
