// Parts that rows of the table share.

import type { Answers } from '../../client/index.ts'
import type { AnswerForm, RouteCall } from '../table/route.ts'

/** An answer in JSON, by the name of its type in `Answers`. */
export function answer(shape: keyof Answers, description: string): AnswerForm {
  return { description, shape }
}

/** The body, which has passed the schema of its route. */
export function bodyOf<Body>({ body }: RouteCall): Body {
  return body as unknown as Body
}

/** The parameter of a path, which has passed the form of its route. */
export function param({ params }: RouteCall, name = 'id'): string {
  return params[name] ?? ''
}

/** Leaves out what is undefined. */
export function given<Options extends object>(
  options: {
    readonly [Name in keyof Options]: Options[Name] | undefined
  },
): Partial<Options> {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Partial<Options>
}
