import { isExpression, isRisky, repetitionLine, syntaxTrouble } from '../../../src/recipes/template/engine.ts'
import { holdValues } from '../../../src/recipes/template/hold.ts'
import { protect } from '../../../src/recipes/template/protect.ts'
import { undeclaredVariables } from '../../../src/recipes/template/variables.ts'
import { testGrowth } from '../../support/growth.ts'
import { TEMPLATE } from './tokens.ts'

const MOST = 500_000

/** All that is read of a template before it is rendered. */
function read(text: string): void {
  protect(text, { isExpression })
  holdValues(text)
  undeclaredVariables(text)
  isRisky(text)
}

testGrowth('a template', { read, tokens: TEMPLATE, most: MOST })
testGrowth('an expression', { read, tokens: TEMPLATE, most: MOST, around: (body) => `{{ ${body} }}` })
testGrowth('a tag', { read, tokens: TEMPLATE, most: MOST, around: (body) => `{% set ${body} %}` })
testGrowth('braces that close late', {
  read,
  tokens: TEMPLATE,
  most: MOST,
  around: (body) => `${body}${' '.repeat(body.length)}}}%}`,
})
testGrowth('an expression that repeats', {
  read: repetitionLine,
  tokens: TEMPLATE,
  most: MOST,
  around: (body) => `{{ ${body} * 2 }}`,
})
testGrowth('the syntax of a template', { read: syntaxTrouble, tokens: TEMPLATE, most: MOST })
