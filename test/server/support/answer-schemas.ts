import schemas from '../../../src/server/http/table/answers.json' with { type: 'json' }

/** The schemas of all answers, by name. */
export const ANSWER_SCHEMAS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = schemas
