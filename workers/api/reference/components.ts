/**
 * The schemas that the document names, so that a client generated from it has a type for each. A schema's name here is its
 * name in the document.
 */
export {
  BasicAuthState,
  SetBasicAuth,
  TunnelBasicAuth,
} from "../../../protocol/schemas/access/basic-auth.ts";
export {
  IdentityGateState,
  SetIdentityGate,
  TunnelIdentityGate,
} from "../../../protocol/schemas/access/identity-gate.ts";
export { IpAllowlist, SetIpAllowlist } from "../../../protocol/schemas/access/ip-allowlist.ts";
export {
  MaintenanceState,
  StartMaintenance,
} from "../../../protocol/schemas/access/maintenance.ts";
export {
  PolicyAction,
  TrafficPolicy,
  TunnelPolicy,
} from "../../../protocol/schemas/access/policies.ts";
export { DryRunPolicy, PolicyDryRun } from "../../../protocol/schemas/access/policy-dry-run.ts";
export {
  MintVisitorToken,
  MintedVisitorToken,
} from "../../../protocol/schemas/access/visitor-tokens.ts";
export {
  AccessToken,
  AccountSummary,
  Credentials,
  EmailAddress,
  EmailCode,
  Me,
  MfaRequired,
  PasswordReset,
  Reauthenticate,
  Session,
  SessionList,
  SignUp,
  Status,
} from "../../../protocol/schemas/accounts/accounts.ts";
export { Entitlements } from "../../../protocol/schemas/accounts/entitlements.ts";
export {
  DeviceAuthorization,
  DeviceCode,
  DeviceToken,
  PendingDevice,
  PollDevice,
  Setup,
  SetupResult,
  SetupState,
  StartDevice,
} from "../../../protocol/schemas/accounts/devices.ts";
export {
  ConfirmTotpEnrollment,
  DisableMfa,
  MfaEnabled,
  MfaRemovalToken,
  RequestMfaRemoval,
  TotpEnrollment,
  VerifyMfaChallenge,
} from "../../../protocol/schemas/accounts/mfa.ts";
export { Providers } from "../../../protocol/schemas/accounts/providers.ts";
export {
  Billing,
  CheckoutSession,
  OverLimit,
  PortalSession,
  StartCheckout,
} from "../../../protocol/schemas/billing.ts";
export {
  BindDomain,
  ClaimDomain,
  CustomDomain,
} from "../../../protocol/schemas/domains/domains.ts";
export {
  ReserveSubdomain,
  ReservedSubdomain,
} from "../../../protocol/schemas/domains/reserved-subdomains.ts";
export { ErrorBody as Error } from "../../../protocol/schemas/error-body.ts";
export {
  CaptureDetail,
  CaptureSettings,
  CaptureSummary,
  CapturedMessage,
  CapturedSseEvent,
  TunnelCaptureSettings,
} from "../../../protocol/schemas/inspector/captures.ts";
export { Archive } from "../../../protocol/schemas/inspector/inspector.ts";
export {
  Comparison,
  Difference,
  ReplayRequest,
  ReplayResult,
} from "../../../protocol/schemas/inspector/replays.ts";
export {
  Breakdown,
  Metrics,
  OrganizationUsage,
  SeriesPoint,
} from "../../../protocol/schemas/metrics.ts";
export {
  CreateNetwork,
  Device,
  DeviceEnrollment,
  EnrollDevice,
  NetworkConfig,
  NetworkRelay,
  PrivateNetwork,
  RegisterServer,
  RelayAccess,
} from "../../../protocol/schemas/networks.ts";
export {
  AuditAction,
  AuditEvent,
  PersonalEvent,
} from "../../../protocol/schemas/organizations/audit.ts";
export {
  AcceptInvitation,
  ChangeRole,
  CreateOrganization,
  Invitation,
  InvitationOffer,
  Invite,
  LookUpInvitation,
  Member,
  Organization,
  RenameOrganization,
} from "../../../protocol/schemas/organizations/organizations.ts";
export {
  CreateProject,
  Project,
  RenameProject,
} from "../../../protocol/schemas/organizations/projects.ts";
export { Ok } from "../../../protocol/schemas/scalars.ts";
export {
  Budget,
  BudgetResult,
  MintMasterKey,
  MintProjectToken,
  MintToken,
  MintedToken,
  Token,
} from "../../../protocol/schemas/tokens.ts";
export { Connection, TunnelAgent } from "../../../protocol/schemas/tunnels/connections.ts";
export { PresentedToken } from "../../../protocol/schemas/tunnels/diagnostics.ts";
export {
  CreateTunnel,
  Tunnel,
  TunnelShards,
  TunnelShardsResult,
  TunnelStatusResult,
} from "../../../protocol/schemas/tunnels/tunnels.ts";
export {
  Acknowledgement,
  CreateReceiver,
  Delivery,
  DeliveryPage,
  Receiver,
  ReceiverState,
  RotateReceiverSecret,
} from "../../../protocol/schemas/webhooks.ts";
