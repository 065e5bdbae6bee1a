/** docs/operators/security.md names an existing test for every bound. */
import { testNamedTests } from "./named-tests.ts";

await testNamedTests("docs/operators/security.md");
