/** Cancels the subscription of a deleted organization at the payment provider. */
import { getConfig } from "../../config/config.ts";
import type { Env } from "../../env.ts";

/** @throws Error when the provider can't be reached or refuses. */
export async function cancelSubscription(env: Env, subscriptionId: string): Promise<void> {
  const config = getConfig(env);
  if (config.BILLING_MODE !== "payments") throw new Error("BILLING_MODE is no longer payments");
  const { describePaymentError, createPayments } = await import("./provider.ts");
  try {
    await createPayments(env, config).cancelSubscription(subscriptionId);
  } catch (failure) {
    // The failure itself may have keys and personal data, and the message is all that the log needs.
    throw new Error(describePaymentError(failure), { cause: undefined });
  }
}
