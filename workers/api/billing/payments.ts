/** How routes call the payment provider, and the error when a call fails. */
import { ApiError } from "../../errors.ts";
import { log } from "../../../shared/log.ts";
import type { Payments } from "../../integrations/payments/provider.ts";
import type { ApiContext } from "../route.ts";

/** The provider's library is loaded by the first request that needs it. */
export async function getPayments({ env, var: { config } }: ApiContext): Promise<Payments> {
  const { createPayments } = await import("../../integrations/payments/provider.ts");
  return createPayments(env, config);
}

export async function callPayments<Value>(c: ApiContext, call: Promise<Value>): Promise<Value> {
  try {
    return await call;
  } catch (failure) {
    const { describePaymentError } = await import("../../integrations/payments/provider.ts");
    const { requestId } = c.var;
    log("error", "payments_failed", { requestId, cause: describePaymentError(failure) });
    const message = "The payment provider can't be reached right now. Try again later.";
    throw new ApiError("unavailable", message, { cause: failure });
  }
}

export function billingNotConfigured(): ApiError {
  return new ApiError("billing_not_configured", "Billing is not configured on this server.");
}
