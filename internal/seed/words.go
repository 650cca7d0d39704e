package seed

import "strings"

// A name is made of a first word, a second word and a kind of business. The
// numbers of words are powers of two, so that a place in a list is a group of
// bits, and the lists are sorted, so that names have nearly the order of their numbers.
var (
	firstWords = strings.Fields(`
		alder amber apex arbor arctic ash aspen atlas autumn azure basalt bay beacon birch blue bold bramble brass
		bright bronze brook cedar cinder citrus clear cliff cloud clover coast cobalt copper coral crescent crest
		crystal cypress dawn delta desert dune dusk eagle early east echo elder elm ember emerald ever falcon fern
		field fir flint forest fox frost garnet glacier glen gold grand granite green grey grove harbor hawk hazel
		heath heron high hollow honey indigo iris iron island ivory ivy jade jasper juniper keen lake lark laurel
		lavender light lily linden lion lotus lunar maple marble meadow mesa mild mint misty moon moss noble north
		nova oak ocean olive onyx opal orchid owl pacific pearl pine plain polar prairie prime quartz quick quiet rain
		rapid raven red`)
	secondWords = strings.Fields(`
		anchor arch arrow axis bank barn basin beam bell bend berry bird blade bloom board bolt bond book bough bow
		box branch bridge brush buck bud bur cape cast castle chart chase circle clay coil comb compass cone core
		court cove craft crane creek crown cube current curve dale deck deer dell dial dock dome door draft drift drum
		edge fall feather fen fire fish flag flame fleet float flow foam fold ford forge fork frame front gate gear
		gem glade glass globe grain grid guard gulf gull hall hand hart haven helm hill hook horn house hull jet key
		kite knot lamp land lane leaf ledge lens level line link lock loft loom mark mast mill mine mirror needle nest
		net node oar path peak pier point`)
	kinds = strings.Fields(`
		air analytics audio bank bio books capital ceramics chem cloud consulting data design devices energy events
		farms foods games group health homes insurance kitchen labs learning legal logistics marine market materials
		media metals mobile motors music networks optics outdoors paper partners pay pharma press rail retail robotics
		security semi software space sports staffing steel studio supply systems telecom textiles tools trade travel
		water works`)
	// endings repeat the frequent ones. None is of a country.
	endings = strings.Fields(`.com .com .com .com .com .com .com .com .io .net .org .co .ai .app .dev .tech`)
)
