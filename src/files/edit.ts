import { InputError } from '../base/error.ts'
import { invalidArgument } from './failure.ts'

/** What may be read at once. */
const MOST_LENGTH = 16_000_000

export interface Edit {
  readonly oldText: string
  readonly newText: string
  /** Replaces every occurrence. Unsaid, there must be exactly one. */
  readonly replaceAll?: boolean
}

/** The text after all edits, each made on what the one before left. One that does not fit refuses all of them. */
export function applyEdits(text: string, edits: readonly Edit[], path: string): string {
  if (!Array.isArray(edits) || edits.length === 0) throw invalidArgument('edits', edits, 'give at least one edit.')
  return edits.reduce((current, edit, index) => applyEdit(current, edit, `edit ${index + 1} of ${path}`), text)
}

function applyEdit(text: string, { oldText, newText, replaceAll = false }: Edit, where: string): string {
  if (typeof oldText !== 'string' || oldText === '')
    throw invalidArgument('oldText', oldText, 'give the text to replace.')
  if (typeof newText !== 'string') throw invalidArgument('newText', newText, 'give a text.')
  const parts = text.split(oldText)
  const count = parts.length - 1
  const length = text.length + count * (newText.length - oldText.length)
  if (length > MOST_LENGTH) throw invalidArgument('newText', newText, `${where} makes the file too large.`)
  if (count === 1 || (count > 1 && replaceAll)) return parts.join(newText)
  const hint = count === 0 ? absent(text, oldText) : 'Give more of the text around it, or replaceAll.'
  throw new InputError('invalid_input', `Nothing was changed: oldText of ${where} has ${count} matches. ${hint}`, {
    details: { matches: count },
  })
}

function absent(text: string, oldText: string): string {
  const isOtherLineEnd = text.includes('\r\n') && !oldText.includes('\r') && oldText.includes('\n')
  return isOtherLineEnd ? 'Its lines end in \\r\\n.' : 'Read the file and give its exact text.'
}
