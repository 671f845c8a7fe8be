import type { Json } from '../../base/json.ts'
import type { Tool } from '../tool.ts'
import { sourceMark, type ToolSource } from './source.ts'

/** Tools that are there at once, as a source: one name for all of them. */
export function toolkitSource(about: Json, tools: Readonly<Record<string, Tool>>): ToolSource {
  return Object.freeze({ ...source(about), tools })
}

/** One that is asked for and that there is not: what uses it is told so. */
export function absentSource(about: Json, reason: string, required: boolean): ToolSource {
  return Object.freeze({ ...source(about), required, open: () => Promise.reject(new Error(reason)) })
}

function source(about: Json): ToolSource {
  return {
    about,
    tools: null,
    needs: [],
    required: false,
    scope: 'run',
    key: `toolkit ${JSON.stringify(about)}`,
    missing: () => [],
    open: () => Promise.reject(new Error('this source has its tools at once')),
    [sourceMark]: true,
  }
}
