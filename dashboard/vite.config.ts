/** The build of the dashboard: files for `dist/dashboard`, whose names contain a hash of their content. */
import { defineConfig } from "vite";

export default defineConfig({
  logLevel: "error",
  build: {
    outDir: "../dist/dashboard",
    emptyOutDir: true,
    manifest: true,
    // The versions that know `light-dark()` and all that the pages use of ES2024.
    target: ["es2024", "chrome123", "firefox121", "safari17.5"],
    // The content security policy allows files of this origin only, no `data:` URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
