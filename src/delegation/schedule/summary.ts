import type { Usage } from '../../graph/content.ts'
import type { TaskResult } from './task.ts'

/** Characters that count as one token, about. */
const TOKEN_CHARS = 4

/** What all tasks gave in one text: each has an equal share of the room, and a line says how it went. */
export function mergedSummary(
  results: readonly TaskResult[],
  { tokens, usage, durationMs }: { readonly tokens: number; readonly usage: Usage; readonly durationMs: number },
): string {
  const statistics = statisticsOf(results, usage, durationMs)
  const room = Math.max(0, tokens * TOKEN_CHARS - statistics.length - 2)
  const share = results.length === 0 ? 0 : Math.floor(room / results.length) - 2
  const parts = results.map((result) => cut(partOf(result), Math.max(0, share)))
  return [...parts, statistics].filter((part) => part !== '').join('\n\n')
}

function partOf({ id, status, text, reason }: TaskResult): string {
  if (status === 'completed') return `✓ ${id}: ${text}`
  return `✗ ${id} (${status}): ${reason ?? ''}${text === '' ? '' : `\n${text}`}`
}

function statisticsOf(results: readonly TaskResult[], usage: Usage, durationMs: number): string {
  const of = (status: TaskResult['status']) => results.filter((result) => result.status === status).length
  const others = (['failed', 'cancelled', 'skipped'] as const).map((status) => `${of(status)} ${status}`)
  const spent = `${usage.inputTokens + usage.outputTokens} tokens, ${(durationMs / 1_000).toFixed(1)} s`
  return `${of('completed')} of ${results.length} tasks completed, ${others.join(', ')}; ${spent}.`
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}…`
}
