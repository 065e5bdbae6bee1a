/** Routes whose every 400 has an error code of their own, instead of `invalid_request`. */
import { createMiddleware } from "hono/factory";
import { ERROR_HEADER, type ErrorCode } from "../../protocol/errors.ts";
import type { ErrorBody } from "../../protocol/schemas/error-body.ts";

/** Also of a body that is missing or can't be read: the route's own validation never sees it. */
export const replaceBadRequestCode = (code: ErrorCode) =>
  createMiddleware(async (c, next) => {
    await next();
    if (c.res.status !== 400) return;
    c.res = Response.json({ ...(await c.res.json<ErrorBody>()), error: code }, c.res);
    c.res.headers.set(ERROR_HEADER, code);
  });
