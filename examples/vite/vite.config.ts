import { defineConfig } from "vite";
import { underpass } from "./underpass-plugin.ts";

export default defineConfig({ plugins: [underpass()] });
