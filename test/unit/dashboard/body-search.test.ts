import { expect, test } from "vitest";
import { RequestError } from "../../../dashboard/api/request.ts";
import { searchBodies } from "../../../dashboard/pages/requests/filter/body-search.ts";
import { buildCapture, buildCaptureSummary, getCaptureId } from "../../harness/tunnel/capture.ts";

test("a request that was dropped since it was listed does not end a search in bodies", async () => {
  const found: string[] = [];
  const searched: string[] = [];
  const captures = [1, 2, 3].map((number) => buildCaptureSummary(number, { response_size: 6 }));
  await searchBodies(captures, "needle", {
    load(id) {
      if (id === getCaptureId(2))
        return Promise.reject(new RequestError({ error: "not_found" }, null));
      return Promise.resolve(buildCapture({ id, response_body: btoa("Needle") }));
    },
    signal: new AbortController().signal,
    onSearched({ id }, isFound) {
      searched.push(id);
      if (isFound) found.push(id);
    },
  });
  expect(searched.toSorted()).toEqual([1, 2, 3].map(getCaptureId));
  expect(found.toSorted()).toEqual([1, 3].map(getCaptureId));
});
