import type { Outcome } from 'legate'
import { STATUSES } from 'legate/rows'
import { describe, expect, test } from 'vitest'
import { type FoldFacts, fold } from '../../src/core/rules/delegation/fold.ts'

const outcome: Outcome = {
  status: 'completed',
  runId: 'run',
  conversationId: 'child',
  answerNodeId: null,
  error: null,
  usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 },
  modelCalls: 3,
  toolCalls: 4,
  children: 5,
  durationMs: 6,
  retryable: false,
  advice: null,
  uncertain: [],
  open: [],
  absent: [],
  delegations: [],
  text: 'Words.',
  content: 'Words.',
  output: null,
  extra: {},
}

const facts = (contract: 'typed' | 'message'): FoldFacts => ({
  contract,
  agentName: 'expert',
  hostName: 'host',
  delegationContext: { input_payload: 1 },
  childConversationId: 'S',
})

/** The table of outcomes and contracts, whole. */
const table: Record<(typeof STATUSES)[number], [typed: string, message: string, unavailable: boolean]> = {
  completed: ['Words.', 'session_id: S\n\nWords.', false],
  max_turns: ['[max_turns] Why.\n\nWords.', 'session_id: S\n\n[max_turns] Why.\n\nWords.', true],
  over_budget: ['[over_budget] Why.\n\nWords.', 'session_id: S\n\n[over_budget] Why.\n\nWords.', true],
  timed_out: ['[timed_out] Why.\n\nWords.', 'session_id: S\n\n[timed_out] Why.\n\nWords.', true],
  cancelled: [
    '<system-info>The tool call has been interrupted by the user.</system-info>\n\nWords.',
    'Error: Execution error: cancelled\n\nWords.',
    false,
  ],
  failed: ['Subagent execution unavailable. Why.\n\nWords.', 'Error: Execution error: Why.\n\nWords.', true],
  uncertain: ['Subagent execution unavailable. Why.\n\nWords.', 'Error: Execution error: Why.\n\nWords.', true],
  invalid_output: ['Subagent produced invalid reply payload. Why.', 'Error: Execution error: Why.\n\nWords.', true],
  invalid_input: ['Subagent input validation failed. Details: Why.', 'Error: Why.', true],
  unavailable: ['Delegation skipped: subagent unavailable. Why.', 'Error: Session setup failed: Why.', true],
  denied: ['Delegation skipped: subagent unavailable. Why.', 'Error: Session setup failed: Why.', true],
}

describe.each(STATUSES)('an outcome that is %s', (status) => {
  const error = status === 'completed' ? null : { code: status, message: 'Why.' }
  const [typed, message, unavailable] = table[status]

  test.each([
    ['typed', typed],
    ['message', message],
  ] as const)('folds into its words by the %s contract', (contract, words) => {
    expect(fold(facts(contract), { ...outcome, status, error }).content).toBe(words)
  })

  test('carries the reserved metadata and nothing else', () => {
    const { metadata, isError } = fold(facts('typed'), { ...outcome, status, error })

    expect(isError).toBe(status !== 'completed')
    expect(metadata).toMatchObject({
      subagent: 'expert',
      supervisor: 'host',
      delegation_context: { input_payload: 1 },
      outcome: { status, usage: { inputTokens: 1 }, turns: 3, duration_ms: 6, retryable: false, advice: null },
    })
    expect(Object.keys(metadata).sort()).toEqual(
      [
        'delegation_context',
        'outcome',
        'subagent',
        'supervisor',
        ...(unavailable ? ['error', 'unavailable'] : []),
      ].sort(),
    )
    expect(JSON.parse(JSON.stringify(metadata))).toEqual(metadata)
  })

  test('without words says only what happened', () => {
    const silent = fold(facts('typed'), { ...outcome, status, error, text: '', content: '' }).content

    expect(String(silent)).not.toMatch(/\n$/)
  })
})
