import { DefinitionError } from '../base/error.ts'

/**
 * What an agent may do itself (`use`) and may pass on (`delegate`, default: the same). Rules read `domain:pattern`, such
 * as `tool:search`, `agent:*`, `model:openai/*`. `ask` and `deny` bind both.
 */
export interface Grant {
  readonly use?: readonly string[]
  readonly delegate?: readonly string[]
  readonly ask?: readonly string[]
  readonly deny?: readonly string[]
}

/** One voice in a decision: plain data, so that it can be frozen into a child's ceiling. */
export interface Layer {
  /** Who set it, for explanations. */
  readonly by: string
  readonly allow: readonly string[]
  readonly ask: readonly string[]
  readonly deny: readonly string[]
}

const DOMAINS: ReadonlySet<string> = new Set([
  'tool',
  'agent',
  'model',
  'exec',
  'net',
  'file.list',
  'file.read',
  'file.write',
  'file.delete',
  'file.*',
])

/** Without a grant the toolkit is the limit: files, programs and hosts need a rule. */
const DEFAULT_USE: readonly string[] = Object.freeze(['tool:*', 'agent:*', 'model:**'])
const NONE: readonly string[] = Object.freeze([])

/** What an agent itself is bound by. */
export function useLayer(by: string, grant: Grant | undefined): Layer {
  return { by, allow: grant?.use ?? DEFAULT_USE, ask: grant?.ask ?? NONE, deny: grant?.deny ?? NONE }
}

/** What an agent's children are bound by, whatever their own grant says (I1). */
export function delegateLayer(by: string, grant: Grant | undefined): Layer {
  const allow = grant?.delegate ?? grant?.use ?? DEFAULT_USE
  return { by, allow, ask: grant?.ask ?? NONE, deny: grant?.deny ?? NONE }
}

/** Refuses a rule that could never match anything: a typing mistake must not pass for a permission. */
export function checkGrant(grant: Grant, where: string): void {
  for (const key of Object.keys(grant)) {
    if (!['use', 'delegate', 'ask', 'deny'].includes(key)) {
      throw new DefinitionError('definition', `${where}: a grant has use, delegate, ask and deny, not "${key}".`)
    }
  }
  for (const rule of [grant.use, grant.delegate, grant.ask, grant.deny].flatMap((rules) => rules ?? [])) {
    const domain = rule.slice(0, Math.max(0, rule.indexOf(':')))
    if (DOMAINS.has(domain)) continue
    const known = [...DOMAINS].join(', ')
    throw new DefinitionError('definition', `${where}: the rule "${rule}" must start with one of ${known} and a colon.`)
  }
}
