// A wait for a person, as a request for permission of ACP, and the choice as a word on it. Pure functions.
//
// Must stay true (I11):
//   - The person reads all that a yes allows, as text of the prompt: editors show titles in part, and raw input not at all.
//   - No character of a model or a file is invisible in the prompt.

import { type AskedFacts, askedText } from '../../../doors/rows.ts'
import type { ScopedRuntime } from '../../../index.ts'
import { diffsOf, kindOf, permissionTitle, textContent, visibleJson } from './tool-view.ts'

/** The facts of a request, from its event or from the list of what waits. */
export interface AskedPermission extends AskedFacts {
  readonly nodeId: string
  readonly seen: string
}

/** The parameters of `session/request_permission`. */
export function permissionOf(sessionId: string, asked: AskedPermission, folder: string) {
  const { nodeId, request, tool, input } = asked
  const call = { name: tool ?? request, input }
  return {
    sessionId,
    toolCall: {
      toolCallId: nodeId,
      title: permissionTitle(asked),
      kind: kindOf(call, false),
      status: 'pending' as const,
      rawInput: visibleJson(input),
      content: [...textContent(askedText(asked)), ...diffsOf(call, folder)] as never,
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
