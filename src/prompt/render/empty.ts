import { InputError } from '../../base/error.ts'
import { isEmpty, isSlot, type Layer } from '../slots/slot.ts'

/** Nothing in the prompt asks anything of a model. */
export class EmptyPromptError extends InputError {
  static override readonly kind: string = 'EmptyPromptError'
}

const ASKING = ['input', 'info', 'instruct', 'output', 'attachment']

/** System, history, tools, examples and results alone ask nothing. */
export function checkAsksSomething(view: Layer): void {
  if (ASKING.some((slot) => !isEmpty(view.get(slot)))) return
  if ([...view.keys()].some((key) => !isSlot(key))) return
  throw emptyPrompt(`none of ${ASKING.join(', ')} says anything, and there is no key of your own`)
}

export function emptyPrompt(why: string): EmptyPromptError {
  return new EmptyPromptError('invalid_input', `The prompt is empty: ${why}. Give it an input.`)
}
