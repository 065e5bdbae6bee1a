/** Ends at the payment provider what is paid for an organization that is no more. */
import { getConfig } from "../../config/config.ts";
import type { Env } from "../../env.ts";

/** @throws Error when the provider can't be asked now. */
export async function cancelSubscription(env: Env, subscriptionId: string): Promise<void> {
  const config = getConfig(env);
  if (config.BILLING_MODE !== "payments") throw new Error("BILLING_MODE is not payments any more");
  const { describePaymentError, createPayments } = await import("./provider.ts");
  try {
    await createPayments(env, config).cancelSubscription(subscriptionId);
  } catch (failure) {
    throw new Error(describePaymentError(failure), { cause: undefined });
  }
}
