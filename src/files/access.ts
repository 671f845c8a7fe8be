import { flag, type OptionRules } from '../base/options.ts'
import { type Decision, decide, type Verdict } from '../grant/decide.ts'
import { EVERYTHING, type Layer } from '../grant/grant.ts'
import { fileRequest, type Request } from '../grant/request.ts'
import { denied, notFound, type Operation } from './failure.ts'
import { type Area, type LogicalPath, readPath } from './path.ts'

/** What overrides grants, however much they allow. */
export interface FilePolicy {
  /** Default: `/userinput/` is read only. Nothing is ever deleted there. */
  readonly allowWriteUserinput?: boolean
  /** Default: nothing is deleted in `/internal/`. */
  readonly allowDeleteInternal?: boolean
}

export const POLICY: OptionRules<FilePolicy> = { allowWriteUserinput: flag, allowDeleteInternal: flag }

export interface AccessParts {
  /** The areas there are. */
  readonly areas: readonly Area[]
  readonly policy: FilePolicy
  readonly layers: readonly Layer[]
  /** Has a person allowed this request for the call that runs? */
  readonly isApproved: (request: Request) => boolean
}

/** Which paths one agent may reach, and for what: its layers, then the policy, then whether there is such an area. */
export class Access {
  private readonly parts: AccessParts

  constructor(parts: AccessParts) {
    this.parts = parts
  }

  /** Throws unless the agent may. Gives `ask` where a person had to allow it, and did. */
  check(operation: Operation, path: LogicalPath): Verdict {
    const { verdict, reason } = this.decide(operation, path)
    if (verdict === 'deny') throw denied(operation, path.text, reason)
    if (verdict === 'ask' && !this.parts.isApproved(fileRequest(operation, path))) {
      throw denied(operation, path.text, `${reason}, and nobody allowed it before the call began`)
    }
    if (!this.hasAreaOf(path)) throw notFound(path.text)
    return verdict
  }

  /** Could the agent do it, if need be after a person allowed it? */
  may(operation: Operation, path: LogicalPath): boolean {
    return this.hasAreaOf(path) && this.decide(operation, path).verdict !== 'deny'
  }

  /** A person who allowed a listing allowed the names in it, where the rules ask for them too. */
  isShown(entry: LogicalPath, listing: Verdict): boolean {
    const { verdict } = this.decide('list', entry)
    return verdict === 'allow' || (verdict === 'ask' && listing === 'ask')
  }

  /**
   * Do rules keep a definition in these files from the agent? A layer that has no rule for files says nothing of it; whoever
   * configured the definition did.
   */
  isKept(path: LogicalPath): boolean {
    const request = fileRequest('read', path)
    const { verdict } = decide(this.parts.layers.map(withoutSilence), request)
    return verdict === 'deny' || (verdict === 'ask' && !this.parts.isApproved(request))
  }

  private hasAreaOf({ segments: [area] }: LogicalPath): boolean {
    return (this.parts.areas as readonly unknown[]).includes(area)
  }

  private decide(operation: Operation, path: LogicalPath): Pick<Decision, 'verdict' | 'reason'> {
    const { layers, policy } = this.parts
    const decision = decide(layers, fileRequest(operation, path))
    if (decision.verdict === 'deny') return decision
    const refused = refusedBy(policy, operation, path.segments[0])
    return refused === undefined ? decision : { verdict: 'deny', reason: refused }
  }
}

function withoutSilence(layer: Layer): Layer {
  return layer.allow.some((rule) => rule.startsWith('file.')) ? layer : { ...layer, allow: EVERYTHING }
}

function refusedBy(policy: FilePolicy, operation: Operation, area: string | undefined): string | undefined {
  if (area === 'userinput' && operation === 'write' && !policy.allowWriteUserinput) return '/userinput/ is read only'
  if (area === 'userinput' && operation === 'delete') return 'nothing in /userinput/ is deleted'
  if (area === 'internal' && operation === 'delete' && !policy.allowDeleteInternal) {
    return 'nothing in /internal/ is deleted'
  }
  return undefined
}

/**
 * What a tool that does this with a path asks for before it runs. Nothing where it is no path, which the files refuse, and
 * for "/", which shows what may be seen.
 */
export function fileNeed(operation: Operation, given: string): readonly Request[] {
  try {
    const path = readPath(given, 'directory')
    return path.text === '/' ? [] : [fileRequest(operation, path)]
  } catch {
    return []
  }
}
