export { isAsWide } from '../grant/as-wide.ts'
export { type Decision, decide, type Explanation, explain, type LayerAnswer, type Verdict } from '../grant/decide.ts'
export { delegateLayer, type Layer, narrow, useLayer } from '../grant/grant.ts'
export { type KnownRequests, type LintFinding, lint } from '../grant/lint.ts'
export {
  type ApprovalRight,
  atThisMachine,
  checkPrincipal,
  countedIds,
  type DayBudget,
  hasScope,
  isOfThisMachine,
  isOperator,
  looksAfter,
  maySee,
  mayStart,
  narrowPrincipal,
  SCOPES,
  type Scope,
  seesEverything,
} from '../grant/principal.ts'
export { BUILT_IN_PROFILES, type Profiles, profileLayer } from '../grant/profile.ts'
export {
  type HostRequest,
  hostRequest,
  type ProgramRequest,
  programRequest,
  type Request,
  readRequest,
} from '../grant/request.ts'
export type { MadeToken, RevokedTokens, TokenInfo } from '../grant/token-info.ts'
