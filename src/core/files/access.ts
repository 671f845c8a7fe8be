// Decides what one agent may do with a path. `files/files` asks it before every operation; `fileNeed` gives file tools
// the requests that are decided before their call runs. It reads layers and the policy, never a file.
//
// Stays true:
// - The layers decide through `grant/decide` alone. The policy and missing areas can only take away.
// - The request is made from the very path that is opened (I11), and a path has one spelling (`files/path`).
// - "ask" is a no, unless a person allowed this request for the running call.

import { flag, type OptionRules } from '../base/options.ts'
import { type Decision, decide, type Verdict } from '../grant/decide.ts'
import { EVERYTHING, type Layer } from '../grant/grant.ts'
import { isNamed } from '../grant/guarded.ts'
import { fileRequest, type Request } from '../grant/request.ts'
import { denied, type FileOperation, fileNotFound } from './failure.ts'
import { type Area, type LogicalPath, readFilePath } from './path.ts'

/** Restrictions that hold however much a grant allows. */
export interface FilePolicy {
  /** Lets grants allow writing in `/userinput/`; nobody can ever delete there. Default: it is read only. */
  readonly allowWriteUserinput?: boolean
  /** Lets grants allow deleting in `/internal/`. Default: nobody can delete there. */
  readonly allowDeleteInternal?: boolean
}

export const POLICY: OptionRules<FilePolicy> = { allowWriteUserinput: flag, allowDeleteInternal: flag }

export interface AccessParts {
  /** The areas that the backend has. */
  readonly areas: readonly Area[]
  readonly policy: FilePolicy
  readonly layers: readonly Layer[]
  /** True when a person has allowed this request for the running call. */
  readonly isApproved: (request: Request) => boolean
}

/**
 * Decides which paths one agent may reach, and for what: its layers first, then the policy, then whether the area
 * exists.
 */
export class FileAccess {
  private readonly parts: AccessParts

  constructor(parts: AccessParts) {
    this.parts = parts
  }

  /** Throws unless the agent may. Returns `ask` where a person had to allow it, and did. */
  check(operation: FileOperation, path: LogicalPath): Verdict {
    const { verdict, reason } = this.decide(operation, path)
    if (verdict === 'deny') throw denied(operation, path.text, reason)
    if (verdict === 'ask' && !this.parts.isApproved(fileRequest(operation, path))) {
      throw denied(operation, path.text, `${reason}, and nobody allowed it before the call began`)
    }
    if (!this.hasAreaOf(path)) throw fileNotFound(path.text)
    return verdict
  }

  /** Throws unless a rule names one of these, where any other rule would do for the same path. */
  checkNamed(path: LogicalPath, names: readonly string[], operation: FileOperation): void {
    if (isNamed(this.parts.layers, fileRequest(operation, path), names)) return
    const why = `it may decide which programs git runs, and no rule names it, such as file.${operation}:${path.text}`
    throw denied(operation, path.text, why)
  }

  /** True when the agent could do it, if need be after a person allows it. */
  may(operation: FileOperation, path: LogicalPath): boolean {
    return this.hasAreaOf(path) && this.decide(operation, path).verdict !== 'deny'
  }

  /** True when the agent may do it without being asked. */
  isFree(operation: FileOperation, path: LogicalPath): boolean {
    return this.hasAreaOf(path) && this.decide(operation, path).verdict === 'allow'
  }

  /** A person who allowed a listing also allowed the names in it, where the rules ask about them too. */
  isShown(entry: LogicalPath, listing: Verdict): boolean {
    const { verdict } = this.decide('list', entry)
    return verdict === 'allow' || (verdict === 'ask' && listing === 'ask')
  }

  /**
   * True when rules keep a definition in these files from the agent. A layer without rules for files keeps nothing,
   * because whoever configured the definition gave it out.
   */
  isKept(path: LogicalPath): boolean {
    const request = fileRequest('read', path)
    const { verdict } = decide(this.parts.layers.map(withoutSilence), request)
    return verdict === 'deny' || (verdict === 'ask' && !this.parts.isApproved(request))
  }

  private hasAreaOf({ segments: [area] }: LogicalPath): boolean {
    return (this.parts.areas as readonly unknown[]).includes(area)
  }

  private decide(operation: FileOperation, path: LogicalPath): Pick<Decision, 'verdict' | 'reason'> {
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

function refusedBy(policy: FilePolicy, operation: FileOperation, area: string | undefined): string | undefined {
  if (area === 'userinput' && operation === 'write' && !policy.allowWriteUserinput) return '/userinput/ is read only'
  if (area === 'userinput' && operation === 'delete') return 'nothing in /userinput/ is deleted'
  if (area === 'internal' && operation === 'delete' && !policy.allowDeleteInternal) {
    return 'nothing in /internal/ is deleted'
  }
  return undefined
}

/**
 * The requests that a tool makes before it runs an operation on a path. None for an invalid path, which the files
 * refuse, and for "/", which shows only what the agent may see.
 */
export function fileNeed(operation: FileOperation, given: string): readonly Request[] {
  try {
    const path = readFilePath(given, 'directory')
    return path.text === '/' ? [] : [fileRequest(operation, path)]
  } catch {
    return []
  }
}
