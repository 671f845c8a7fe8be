// The request of a node that awaits approval, as its row keeps it.
//
// Owns:      its form, and its hash, by which an answer names it.
// Called by: the rules for approvals, and whoever shows or asks for a request.
// Must stay true:
//   - The hash covers all that a yes allows: the request, its arguments and its version. It is in stored rows.
//   - A node that was put in by hand has a hash too: what has none cannot be answered by a principal.

import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import type { Node } from '../../graph/rows.ts'

/** A permission that a node must get from a person before it may continue. */
export interface ApprovalRequest {
  /** `tool:deploy`, `agent:expert`, `file.write:/workspace/x`. */
  readonly request: string
  /** The layer and rule that require the question. */
  readonly reason: string
  /** The arguments: an answer holds for these only. */
  readonly input: Json
  /** True where a denial keeps later nodes from running. */
  readonly required: boolean
  /** A hash of a request whose content may change: an answer holds for this version only. */
  readonly version?: string
  /** The number of the request among those of one call; left out for the call itself. */
  readonly place?: number
  /** A server that a run would start for its tools. A denial of an optional one ends nothing: the run continues without it. */
  readonly start?: Start
  /** JSON Schema of the arguments: edited arguments are checked against it. */
  readonly schema?: Json
}

type Start = {
  readonly name: string
  readonly required: boolean
  /** The kind of definition that it comes from. */
  readonly whose: 'agent' | 'recipe'
}

/** The pending request of a node. One that was put in by hand asks for nothing but its own input. */
export function approvalOf({ kind, input, metadata }: Node): NodeApproval {
  const stored = metadata['approval'] as Partial<NodeApproval> | undefined
  return { ...NO_APPROVAL, ...stored, digest: stored?.digest ?? digestOf({ request: kind }, input as Json) }
}

const NO_APPROVAL = { request: '', reason: '', required: false, input: null, since: 0 } as const

export interface NodeApproval extends ApprovalRequest {
  readonly digest: string
  readonly since: number
}

/** Hashes a list, so that no pair of request and input can pass for another. */
export function digestOf({ request, version }: Pick<ApprovalRequest, 'request' | 'version'>, input: Json): string {
  return sha256(canonicalJson(version === undefined ? [request, input] : [request, input, version]))
}
