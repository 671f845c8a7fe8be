import { TrieRouter } from 'hono/router/trie-router'
import { isId } from '../../../core/base/id.ts'
import type { ParamKind } from '../../../core/operations/operation.ts'
import { NOT_FOUND, Problem } from '../problem/problem.ts'
import type { Route } from './route.ts'

/** A route with the parameters of a path. */
export interface Match {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

/** Finds the route of a request in the table. */
export class Router {
  private readonly routes: TrieRouter<Route> = new TrieRouter()
  private readonly methods: TrieRouter<string> = new TrieRouter()

  constructor(table: readonly Route[]) {
    // The first that fits counts: `{id}` would take what is `{id}:cancel` too.
    for (const route of table.toSorted((a, b) => Number(hasVerb(b)) - Number(hasVerb(a)))) {
      const path = route.path.replaceAll(/\{(\w+)\}(:\w+)?/g, (_, name: string, verb?: string) => {
        return verb === undefined ? `:${name}` : `:${name}{[^/:]+${verb}}`
      })
      this.routes.add(route.method, path, route)
      this.methods.add('ALL', path, route.method)
    }
  }

  /** Is it a part of the inspector? */
  isPage(method: string, path: string): boolean {
    return this.routes.match(method, path)[0][0]?.[0].isPage === true
  }

  /** Throws a Problem where there is no route: 404, or 405 with the methods that there are. */
  find(method: string, path: string): Match {
    const [found] = this.routes.match(method, path)[0]
    if (found !== undefined) return { route: found[0], params: readParams(found[0], found[1] as Params) }
    const others = this.methods.match('ALL', path)[0].map(([other]) => other)
    if (others.length === 0) throw new Problem('not_found', NOT_FOUND.detail)
    const allow = [...new Set(others)].join(', ')
    throw new Problem('method_not_allowed', `This path takes ${allow}.`, { allow })
  }
}

/** Does a parameter of its path end in a verb, as `{id}:cancel` does? */
function hasVerb({ path }: Route): boolean {
  return /\}:\w+$/.test(path)
}

type Params = Readonly<Record<string, string>>

/** A parameter that cannot be what it stands for is unknown: the store is not asked. */
function readParams({ path, params = {} }: Route, given: Params): Params {
  return Object.fromEntries(
    Object.entries(params).map(([name, kind]) => {
      const value = decoded(withoutVerb(path, name, given[name] ?? ''))
      if (value === undefined || !FORMS[kind](value)) throw new Problem('not_found', NOT_FOUND.detail)
      return [name, value]
    }),
  )
}

const FORMS: Readonly<Record<ParamKind, (value: string) => boolean>> = {
  id: isId,
  name: (value) => value.length > 0 && value.length <= 200,
  text: (value) => value.length > 0 && value.length <= 500,
}

/** The part of a segment such as `{id}:cancel` that is the parameter. */
function withoutVerb(path: string, name: string, segment: string): string {
  const [, verb = ''] = path.split(`{${name}}`)
  const [ending = ''] = /^:\w+/.exec(verb) ?? []
  return ending !== '' && segment.endsWith(ending) ? segment.slice(0, -ending.length) : segment
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
