// A wait for a person, as a request for permission of ACP, and the choice as a word on it. Pure functions.

import type { Json, ScopedRuntime } from '../../index.ts'
import { diffsOf, kindOf, titleOf } from './tool-view.ts'

/** The facts of a request, from its event or from the list of what waits. */
export interface AskedPermission {
  readonly nodeId: string
  readonly path: readonly string[]
  readonly request: string
  readonly tool: string | null
  readonly input: Json
  readonly seen: string
}

/** The parameters of `session/request_permission`. */
export function permissionOf(sessionId: string, asked: AskedPermission, folder: string) {
  const { nodeId, path, request, tool, input } = asked
  const call = { name: tool ?? request, input }
  const content = diffsOf(call, folder)
  return {
    sessionId,
    toolCall: {
      toolCallId: nodeId,
      title: tool === null ? `${path.join(' > ')}: ${request}` : titleOf(call, path),
      kind: kindOf(call, false),
      status: 'pending' as const,
      rawInput: input,
      ...(content.length === 0 ? {} : { content: content as never }),
    },
    options: [
      { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' as const },
      { optionId: 'allow_always', name: 'Allow in this conversation', kind: 'allow_always' as const },
      { optionId: 'reject_once', name: 'Deny', kind: 'reject_once' as const },
    ],
  }
}

/** The word that a choice means; undefined where nothing was chosen. */
export function wordOf(
  outcome: { readonly outcome: string; readonly optionId?: string },
  seen: string,
): Parameters<ScopedRuntime['answer']>[1] | undefined {
  if (outcome.outcome !== 'selected') return undefined
  const { optionId } = outcome
  if (optionId === 'reject_once') return { allow: false, reason: 'The person denied it.', seen }
  if (optionId === 'allow_once') return { allow: true, seen }
  return optionId === 'allow_always' ? { allow: true, always: true, seen } : undefined
}
