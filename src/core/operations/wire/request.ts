// The request of an operation: how its arguments become a path and options, and how a server reads them again.
//
// Stays true: it imports nothing, so that a client for browsers has it.

/** How an operation is asked for over HTTP. */
export interface RequestForm {
  /** The method and the path, with `{name}` for each id. */
  readonly http: string
  /** The names of options that are given as plain values behind the ids. */
  readonly plain?: readonly string[]
  /** True: the answer is a text. */
  readonly isText?: boolean
}

export type RequestForms = Readonly<Record<string, RequestForm>>

/** A call as a request: where it goes, and its options. */
interface RequestOfCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly options: { readonly [name: string]: unknown; readonly signal?: AbortSignal }
}

/** The request of a call. Its arguments are the ids of the path, plain values, and an object of options. */
export function requestFor({ http, plain = [] }: RequestForm, given: readonly unknown[]): RequestOfCall {
  const [method = 'GET', pattern = ''] = http.split(' ') as [RequestOfCall['method']?, string?]
  const rest = [...given]
  const path = pattern.replaceAll(/\{\w+\}/g, () => encodeURIComponent(String(rest.shift())))
  const named = plain.map((name) => [name, rest.shift()] as const)
  return { method, path, options: { ...Object.fromEntries(named), ...(rest[0] as object | undefined) } }
}

/** The arguments of a call: the opposite. */
export function argumentsOf(
  { plain = [] }: Pick<RequestForm, 'plain'>,
  ids: readonly string[],
  options: Readonly<Record<string, unknown>>,
): readonly unknown[] {
  const rest = { ...options }
  const values = plain.map((name) => {
    const value = rest[name]
    delete rest[name]
    return value
  })
  return [...ids, ...values, rest]
}
