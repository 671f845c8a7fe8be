import { RecipeError } from '../../base/error.ts'
import type { TextPlace } from '../../base/text-tree/tree.ts'

/** The error for a problem of a prompt file: `file:line:column: problem hint`; `details` has the parts. */
export function fileError({
  problem,
  file,
  at,
  hint,
  cause,
}: {
  readonly problem: string
  readonly file: string
  readonly at?: TextPlace
  /** How to fix it. */
  readonly hint?: string
  readonly cause?: unknown
}): RecipeError {
  const place = at === undefined ? file : `${file}:${at.line}:${at.column}`
  const sentence = /[.!?]$/.test(problem) ? problem : `${problem}.`
  return new RecipeError('recipe', [`${place}: ${sentence}`, hint].filter(Boolean).join(' '), {
    details: { problem, file, line: at?.line ?? null, column: at?.column ?? null, hint: hint ?? null },
    ...(cause === undefined ? {} : { cause }),
  })
}
