import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  build: {
    // Inside the Python package: `sweephand up` serves it, and the wheel ships it.
    outDir: "../layers/core/python/sweephand/local/site",
    emptyOutDir: true,
    // The policy of the pages allows nothing inline, so nothing may become a data: address either.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    // These know light-dark() themselves.
    cssTarget: ["chrome125", "firefox125", "safari17.5"],
    sourcemap: false,
  },
  server: {
    proxy: {
      "/api": "http://127.0.0.1:8080",
      "/config.json": "http://127.0.0.1:8080",
      "/live": { target: "ws://127.0.0.1:8080", ws: true },
    },
  },
  test: {
    environment: "jsdom",
    setupFiles: ["src/testing/setup.ts"],
    css: false,
  },
});
