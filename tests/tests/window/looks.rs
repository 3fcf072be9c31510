//! The window at other sizes and in the dark. Pictures for people; assertions for what must hold.

use lectern_tests::window::{Setting, Window};

use crate::{QUESTION, ask};

/// How bright the page's ground is, 0 to 255.
async fn brightness(window: &Window) -> f64 {
    let script = "
        const paint = document.createElement('canvas').getContext('2d');
        paint.fillStyle = getComputedStyle(document.body).backgroundColor;
        paint.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
        return a === 0 ? -1 : (r + g + b) / 3;";
    window.run(script, vec![]).await.as_f64().unwrap()
}

#[tokio::test]
async fn the_window_is_light_on_a_light_desktop() {
    let window = Window::open(Setting::fresh().with("GTK_THEME", "Adwaita")).await;
    window.see("[data-testid=composer]").await;
    assert!(brightness(&window).await > 200.0);
}

#[tokio::test]
async fn the_window_is_dark_on_a_dark_desktop() {
    let window = Window::open(Setting::fresh().with("GTK_THEME", "Adwaita:dark")).await;
    window.see("[data-testid=composer]").await;
    let brightness = brightness(&window).await;
    assert!((0.0..80.0).contains(&brightness), "{brightness}");
    ask(&window, QUESTION).await;
    window.picture("14-dark").await;
}

#[tokio::test]
async fn nothing_sticks_out_of_a_small_window() {
    let window = Window::open(Setting::fresh()).await;
    ask(&window, QUESTION).await;
    for (width, height) in [(1000, 700), (760, 600), (640, 480)] {
        window.resize(width, height).await;
        window.picture(&format!("15-{width}x{height}")).await;
        let script = "return document.documentElement.scrollWidth <= window.innerWidth";
        assert_eq!(window.run(script, vec![]).await, true, "{width} × {height}");
        window.see("[data-testid=composer]").await;
    }
}
