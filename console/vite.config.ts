import react from "@vitejs/plugin-react";
import { loadEnv } from "vite";
import { defineConfig } from "vitest/config";

const { SWEEPHAND_URL: server = "http://127.0.0.1:8080" } = loadEnv("development", ".", "SWEEPHAND_URL");

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
      "/api": server,
      "/config.json": server,
      "/live": { target: server, ws: true },
    },
  },
  test: {
    environment: "jsdom",
    setupFiles: ["src/testing/setup.ts"],
    css: false,
  },
});
