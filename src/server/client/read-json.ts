import type { Json } from '../../core/base/json.ts'

/** Reads what a server wrote; undefined where it is not JSON. */
export function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
