/** The build of the dashboard: files for `dist/dashboard`, whose names contain a hash of their content. */
import { defineConfig } from "vite";

/**
 * The first page loads one script, and each other page 2 to 12 more. Otherwise each module that two pages share would be a
 * file, and a page load some 40 requests. With a lower number, pages load more code that they do not use.
 */
const SHARED_BY_PAGES = 6;

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
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "index", tags: ["$initial"] },
            { name: "shared", minShareCount: SHARED_BY_PAGES },
          ],
        },
      },
    },
  },
});
