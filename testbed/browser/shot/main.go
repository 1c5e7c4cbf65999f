// Command shot makes the pictures of docs/dashboard.md: shot URL DIR NAME=HASH...
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	ctx, end := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	defer end()
	ctx, done := chromedp.NewContext(ctx)
	defer done()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 760), chromedp.Navigate(os.Args[1]), chromedp.WaitReady("#app")); err != nil {
		return err
	}
	go func() {
		for m, err := range chromedp.Console(ctx) {
			fmt.Println("console:", m, err)
			if err != nil {
				return
			}
		}
	}()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](`document.documentElement.dataset.ready === "yes"`, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
		return err
	}
	for _, arg := range os.Args[3:] {
		name, rest, _ := strings.Cut(arg, "=")
		hash, js, _ := strings.Cut(rest, "=>")
		theme := "light"
		if strings.HasSuffix(name, "-dark") {
			theme = "dark"
		}
		steps := []chromedp.Action[chromedp.Void]{
			chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				_, err := chromedp.Run(ctx, chromedp.Evaluate[any](fmt.Sprintf("document.documentElement.dataset.theme=%q;dispatchEvent(new Event('theme'));location.hash=%q;0", theme, hash)))
				return err
			}), chromedp.Sleep(4500 * time.Millisecond)}
		if js != "" {
			steps = append(steps, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				_, err := chromedp.Run(ctx, chromedp.Evaluate[any](js+";0"))
				return err
			}), chromedp.Sleep(1500*time.Millisecond))
		}
		if err := chromedp.Do(ctx, steps...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(os.Args[2], name+".png"), png, 0o644); err != nil {
			return err
		}
	}
	return nil
}
