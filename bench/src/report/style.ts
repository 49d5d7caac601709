/** The style sheet of the report: one column, in light or dark colors according to the setting of the reader's system. */

export const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1e21; --soft: #667; --rule: #dfe2e8; --ours: #2563b8; --other: #b3bac6;
  --good: #1a7f4b; --bad: #c2382b; --s1: #c26a12; --s2: #1a7f4b; --s3: #8445b5; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171b; --ink: #e6e8ec; --soft: #9aa2b1; --rule: #2c313a; --ours: #6ea8f7;
  --other: #545d6c; --good: #52c98a; --bad: #f0796c; --s1: #f0a350; --s2: #52c98a; --s3: #c290ee; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .3rem; }
.machine, .source, .question { color: var(--soft); margin: .2rem 0; } .source { font-size: .8rem; }
.warning { border-left: 4px solid var(--s1); padding: .3rem .8rem; }
.headlines { list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .8rem; }
.headlines li { border: 1px solid var(--rule); border-radius: .5rem; padding: .7rem .9rem; } .headlines b { display: block; font-size: 1.7rem; color: var(--ours); }
table { border-collapse: collapse; width: 100%; font-size: .92rem; } th { text-align: left; color: var(--soft); font-weight: 500; }
td, th { padding: .35rem .5rem; border-bottom: 1px solid var(--rule); } .number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.reached td:first-child { color: var(--good); } .missed td:first-child, .missed b { color: var(--bad); }
figure { margin: 1.2rem 0; } figcaption { font-weight: 600; font-size: .95rem; margin-bottom: .2rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .small { font-size: 11.5px; fill: var(--soft); } svg .value { font-weight: 600; }
.ours { fill: var(--ours); } .other { fill: var(--other); } .grid { stroke: var(--rule); } .whisker { stroke: var(--ink); stroke-width: 1.5; opacity: .6; }
.dot { fill: var(--ours); opacity: .55; } .median { stroke: var(--ink); stroke-width: 2.5; } .goal { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg .goal-text { fill: var(--bad); } .line { fill: none; stroke-width: 2.5; }
.line.series-0 { stroke: var(--ours); } .line.series-1 { stroke: var(--s1); } .line.series-2 { stroke: var(--s2); } .line.series-3 { stroke: var(--s3); }
.mark.series-0, svg .label.series-0 { fill: var(--ours); } .mark.series-1, svg .label.series-1 { fill: var(--s1); }
.mark.series-2, svg .label.series-2 { fill: var(--s2); } .mark.series-3, svg .label.series-3 { fill: var(--s3); }
.line.quiet { stroke: var(--soft); stroke-dasharray: 5 4; } .mark.quiet, svg .label.quiet { fill: var(--soft); }
`
