export { type Decision, decide, type Explanation, explain, type LayerAnswer, type Verdict } from './decide.ts'
export { delegateLayer, type Grant, type Layer, narrow, useLayer } from './grant.ts'
export { type KnownRequests, type LintFinding, lint } from './lint.ts'
export { BUILT_IN_PROFILES, type Profiles, profileLayer } from './profile.ts'
export {
  type HostRequest,
  hostRequest,
  type ProgramRequest,
  programRequest,
  type Request,
  readRequest,
} from './request.ts'
