//! Functions of results that are still to come.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use maniple::prelude::*;

#[task(leaf)]
fn number(#[point] point: Point<1>) -> i64 {
    point[0]
}

#[task(leaf)]
fn all_but_two(#[point] point: Point<1>) -> Result<i64> {
    if point[0] == 2 { Err(Error::application("two")) } else { Ok(point[0]) }
}

#[task(leaf)]
fn same_as(#[point] point: Point<1>, value: String) -> bool {
    value == format!("<{}>", point[0])
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    Runtime::builder().workers(2).build().unwrap().run(program)
}

#[test]
fn a_map_of_futures_is_mapped_point_by_point() {
    let outcome = run(async |cx| {
        let texts = cx.index_launch(5, number()).map(|number| format!("<{number}>"));
        assert_eq!(texts.domain(), Domain::from(5).rect());
        let fit = cx.index_launch(5, same_as(&texts)).all().await?;
        Ok((fit, texts.get(3)?.await?, texts.map(|text| text.len() as u64).reduce(Sum).await?))
    });
    assert_eq!(outcome.unwrap(), (vec![true; 5], "<3>".to_owned(), 15));
}

#[test]
fn a_point_that_failed_stays_a_failure_and_the_others_are_mapped() {
    let outcome = run(async |cx| {
        let doubled = cx.index_launch(4, all_but_two()).map(|number| 2 * number);
        assert_eq!(doubled.get(3)?.await?, 6);
        let error = doubled.get(2)?.await.unwrap_err();
        assert!(matches!(error, Error::TaskFailed { .. }), "{error}");
        assert!(doubled.all().await.is_err() && doubled.await.is_err());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_function_that_panics_at_one_point_fails_that_point() {
    let outcome = run(async |cx| {
        let inverse = cx.index_launch(3, number()).map(|number| 6 / number);
        assert_eq!(inverse.get(2)?.await?, 3);
        let error = inverse.await.unwrap_err();
        assert!(matches!(error, Error::Panicked { point: Some(_), .. }), "{error}");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_launch_that_was_refused_is_refused_after_mapping_too() {
    let outcome = run(async |cx| cx.index_launch(usize::MAX, number()).map(|number| number).await);
    assert!(matches!(outcome, Err(Error::Launch { .. })), "{outcome:?}");
}

#[task(leaf)]
fn next(number: i64) -> i64 {
    number + 1
}

#[test]
fn a_result_of_one_runtime_is_no_argument_of_another() {
    let other = Runtime::builder().workers(1).build().unwrap();
    let theirs = other.run(async |cx| Ok(cx.launch(next(1)))).unwrap();
    let outcome = run(async |cx| {
        let own = cx.launch(next(5));
        for refused in
            [cx.launch(next(&theirs)), own.zip_with(&theirs, |a, b| a + b), theirs.zip_with(&own, |a, b| a + b)]
        {
            let error = refused.await.unwrap_err().to_string();
            assert!(error.contains("runtime") && error.contains("`.await`"), "{error}");
        }
        let value = theirs.await?;
        cx.launch(next(value)).await
    });
    assert_eq!(outcome.unwrap(), 3);
}
