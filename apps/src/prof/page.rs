//! The page: a profile as one file of HTML that a browser shows without loading anything else.
//!
//! All computation is done here, and its results are packed by [`PageData`]; the scripts `page/*.js` draw them. The
//! scripts are put together in the order of `SCRIPTS`, as one module.

use super::model::Profile;
use super::page_data::PageData;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 8] = [
    include_str!("page/format.js"),
    include_str!("page/data.js"),
    include_str!("page/colors.js"),
    include_str!("page/order.js"),
    include_str!("page/view.js"),
    include_str!("page/timeline.js"),
    include_str!("page/panels.js"),
    include_str!("page/main.js"),
];

/// A profile as a page.
#[must_use]
pub fn page(profile: &Profile) -> String {
    let data = serde_json::to_string(&PageData::of(profile)).expect("the data is strings, numbers and lists");
    // Nothing in the data may end the element that it stands in.
    let data = data.replace('<', "\\u003c");
    let parts = [("/*STYLE*/", STYLE), ("/*DATA*/", &data), ("/*SCRIPT*/", &SCRIPTS.concat())];
    let mut page = String::with_capacity(PAGE.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = PAGE;
    for (place, part) in parts {
        let (before, after) = rest.split_once(place).expect("the page has a place for each part, in order");
        page.push_str(before);
        page.push_str(part);
        rest = after;
    }
    page.push_str(rest);
    page
}

#[cfg(test)]
mod tests {
    use maniple::profile::Kind;

    use super::super::script::Script;
    use super::*;

    #[test]
    fn no_name_can_end_the_data_or_take_the_place_of_a_part() {
        let mut script = Script::new(1);
        let label = script.label(Kind::Task, "</script><script>alert()</script>/*SCRIPT*/");
        script.span(0, label, 1, 0..1);
        let page = page(&Profile::of(script.0));
        assert_eq!(page.matches("</script>").count(), 2);
        assert_eq!(page.matches("/*SCRIPT*/").count(), 2, "the name stays as it is: of a label, and in a table");
    }

    #[test]
    fn the_page_names_nothing_to_be_fetched() {
        assert!(PAGE.contains("default-src 'none'"));
        for text in SCRIPTS.into_iter().chain([PAGE, STYLE]) {
            for way in ["http:", "https:", "src=", "@import", "fetch(", "XMLHttpRequest"] {
                assert!(!text.contains(way), "{way}");
            }
        }
    }
}
