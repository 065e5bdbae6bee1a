/** Ends at the payment provider what is paid for an organization that is no more. */
import { configOf } from "../../config/config.ts";
import type { Env } from "../../env.ts";

/** @throws Error when the provider can't be asked now. */
export async function endSubscription(env: Env, subscriptionId: string): Promise<void> {
  const config = configOf(env);
  if (config.BILLING_MODE !== "payments") throw new Error("BILLING_MODE is not payments any more");
  const { describePaymentFailure, openPayments } = await import("./provider.ts");
  try {
    await openPayments(env, config).endSubscription(subscriptionId);
  } catch (failure) {
    throw new Error(describePaymentFailure(failure), { cause: undefined });
  }
}
