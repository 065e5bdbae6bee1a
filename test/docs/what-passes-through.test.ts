/** docs/what-passes-through.md names an existing test in every row. */
import { testNamedTests } from "./named-tests.ts";

await testNamedTests("docs/what-passes-through.md");
