import { isLegateError, messageOf } from '../error.ts'
import { hasTooManyKeywords, MOST_KEYWORDS } from './json-check.ts'
import { type JsonSchema, readSchema } from './schema.ts'

/** Tells why a JSON Schema of a file cannot be used; undefined where it can. */
export async function schemaProblem(schema: JsonSchema): Promise<string | undefined> {
  if (hasTooManyKeywords(schema)) return `it has more than ${MOST_KEYWORDS} keywords`
  try {
    await readSchema(schema, 'schema').prepare()
    return undefined
  } catch (error) {
    return isLegateError(error) ? messageOf(error.cause ?? error) : messageOf(error)
  }
}
