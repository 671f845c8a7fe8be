export { isAsWide } from '../core/grant/as-wide.ts'
export {
  type Decision,
  decide,
  type Explanation,
  explain,
  type LayerAnswer,
  type Verdict,
} from '../core/grant/decide.ts'
export { delegateLayer, type Layer, narrow, useLayer } from '../core/grant/grant.ts'
export { type KnownRequests, type LintFinding, lint } from '../core/grant/lint.ts'
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
} from '../core/grant/principal.ts'
export { BUILT_IN_PROFILES, type Profiles, profileLayer } from '../core/grant/profile.ts'
export {
  type HostRequest,
  hostRequest,
  type ProgramRequest,
  programRequest,
  type Request,
  readRequest,
} from '../core/grant/request.ts'
export type { MadeToken, RevokedTokens, TokenInfo } from '../core/grant/token-info.ts'
