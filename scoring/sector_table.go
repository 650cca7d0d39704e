package scoring

import (
	"slices"
	"strings"
)

// sector is one row of the sector table.
type sector struct {
	name string
	// sic are ranges of Standard Industrial Classification codes, both ends included.
	sic [][2]int
	// labels are phrases of industry labels (GICS, SIC, NAICS, Fortune, Crunchbase), in lower case.
	labels []string
	// keywords are words of texts of a site, in lower case. They match industry labels too.
	keywords []string
	// articles are titles of the English Wikipedia, with underscores.
	articles []string
}

// sectors are all sectors. Of equally good matches the first counts, so narrow sectors come before
// wide ones that include them.
var sectors = []sector{
	{
		name: "ai_data",
		labels: phrases("machine intelligence; big data; data mining; business intelligence; predictive analytics; " +
			"natural language processing; computer vision"),
		keywords: list("artificial intelligence, machine learning, llm, generative ai, data platform, analytics"),
		articles: list("Artificial_intelligence, Large_language_model, Data_analysis"),
	},
	{
		name: "cybersecurity",
		labels: phrases("security software; network security; information security; cyber security; fraud detection; " +
			"identity verification"),
		keywords: list("cybersecurity, computer security, threat, identity management, zero trust"),
		articles: list("Computer_security, Zero_trust_architecture, Identity_management"),
	},
	{
		name: "fintech",
		sic:  [][2]int{{6099, 6099}, {6141, 6141}, {6199, 6199}},
		labels: phrases("financial data service; financial data services; mobile payments; payment processing; " +
			"personal finance; crowdfunding; bitcoin; cryptocurrency; virtual currency; blockchain; billing; " +
			"lending; p2p money transfer"),
		keywords: list("fintech, financial technology, payments, payment, wallet, neobank"),
		articles: list("Financial_technology, Mobile_payment, Neobank"),
	},
	{
		name: "biotech_pharma",
		sic:  [][2]int{{2833, 2836}, {8731, 8731}},
		labels: phrases("pharmaceuticals; drug discovery; drug development; genomics; life sciences; " +
			"life sciences tools & services; life science; pharmaceuticals biotechnology & life sciences; " +
			"pharmaceuticals, biotechnology & life sciences; biopharmaceutical; bioinformatics"),
		keywords: list("biotech, biotechnology, pharmaceutical, therapeutics, clinical trial"),
		articles: list("Biotechnology, Pharmaceutical_industry, Clinical_trial"),
	},
	{
		name: "healthcare",
		sic:  [][2]int{{3840, 3851}, {6324, 6324}, {8000, 8099}},
		labels: phrases("health care; medical; medical products and equipment; medical facilities; " +
			"health care equipment & supplies; health care providers & services; health care technology; " +
			"health care equipment & services; insurance and managed care; health insurance; hospital; " +
			"hospitals; ambulatory health care; health and wellness; wholesalers: health care; " +
			"pharmacy and other services; fitness; dental; mental health; nursing"),
		keywords: list("health, healthcare, clinic, patient, telehealth, medical device"),
		articles: list("Health_care, Telehealth, Medical_device"),
	},
	{
		name: "semiconductors_hardware",
		sic:  [][2]int{{3570, 3579}, {3660, 3679}},
		labels: phrases("semiconductors; semiconductors and other electronic components; technology hardware; " +
			"technology hardware, storage & peripherals; electronic equipment; " +
			"electronic equipment, instruments & components; electronic components; communications equipment; " +
			"network and other communications equipment; computers, office equipment; computer hardware; " +
			"consumer electronics; computer and electronic product manufacturing; sensors; 3d printing; " +
			"drones; wearables; internet of things; hardware + software"),
		keywords: list("semiconductor, chip, hardware, electronics, robotics"),
		articles: list("Semiconductor, Computer_hardware, Robotics"),
	},
	{
		name: "software",
		sic:  [][2]int{{7370, 7374}},
		labels: phrases("computer software; it services; information technology; information technology services; " +
			"information technology service; software & services; software publishers; application software; " +
			"web hosting; web development; enterprise software; productivity; collaboration; crm; " +
			"developer tools; developer apis; open source; mobile; apps; messaging; email; internet; " +
			"web tools; file sharing; search; search engine; seo; project management; document management; " +
			"data processing; cloud infrastructure; computer systems design; web design; customer service; " +
			"customer support tools; scheduling; task management; qr codes; location based services; " +
			"technology; tech; mobile software tools; data centers; storage; ios; android; notifications; " +
			"chat; voip; video conferencing; bookmarking; productivity software; browser extensions"),
		keywords: list("software, saas, cloud, api, developer, platform"),
		articles: list("Software_as_a_service, Cloud_computing, Enterprise_software"),
	},
	{
		name: "financial_services",
		sic:  [][2]int{{6000, 6499}, {6700, 6799}},
		labels: phrases("banks; banking; financials; finance; insurance; insurers; insurance: life; " +
			"insurance: life, health; insurance: property and casualty; property and casualty insurance; " +
			"life insurance; capital markets; consumer finance; thrifts & mortgage finance; mortgage; " +
			"diversified financial services; diversified financials; securities; securities and commodity; " +
			"credit intermediation; commercial banks; savings institution; wealth management; " +
			"venture capital; hedge fund; holding companies; multi-sector holdings; financial exchange; " +
			"stock exchange; trading; accounting firms; private equity; reinsurance"),
		keywords: list("bank, insurance, asset management, brokerage, investment"),
		articles: list("Bank, Insurance, Asset_management"),
	},
	{
		name: "real_estate_construction",
		sic:  [][2]int{{1500, 1799}, {6500, 6599}},
		labels: phrases("real estate management & development; real estate investment trust; " +
			"equity real estate investment trusts; reits; homebuilders; homebuilding; homebuilder; " +
			"engineering & construction; construction & engineering; building products; building materials; " +
			"construction materials; building materials, glass; heavy construction; home improvement; " +
			"interior design; property management; contractors; rental housing; coworking; " +
			"lodging real estate"),
		keywords: list("real estate, property, construction, architecture"),
		articles: list("Real_estate, Construction, Property_management"),
	},
	{
		name: "ecommerce_retail",
		sic:  [][2]int{{5000, 5799}, {5900, 5999}},
		labels: phrases("retailing; specialty retail; specialty retailers; general merchandisers; food & drug stores; " +
			"food & staples retailing; food and staples retailing; drug retail; " +
			"internet services and retailing; internet & direct marketing retail; automotive retailing; " +
			"automotive retailing, services; wholesalers; wholesale; wholesale trade; distributors; " +
			"trading companies & distributors; department stores; supermarkets; grocery; grocery stores; " +
			"wholesalers: food and grocery; wholesalers: electronics and office equipment; " +
			"wholesalers: diversified; retail trade; shopping; online shopping; marketplaces; coupons; " +
			"group buying; auctions; classifieds; gift card; deals; collectibles; comparison shopping; " +
			"flash sales; local commerce; subscription commerce"),
		keywords: list("e-commerce, ecommerce, retail, shop, store, marketplace"),
		articles: list("E-commerce, Retail, Online_marketplace"),
	},
	{
		name: "travel_hospitality",
		sic:  [][2]int{{5800, 5899}, {7000, 7099}},
		labels: phrases("hotels; hotels, casinos, resorts; hotels, restaurants & leisure; hotels, restaurants, leisure; " +
			"restaurants; casinos; consumer services; food services; food service; " +
			"food services and drinking places; accommodation; cruise lines; vacation rentals; " +
			"event management; events; nightlife; tickets; ticketing; hospitality; leisure facilities; " +
			"reservations; reviews and recommendations; restaurant technology"),
		keywords: list("travel, hotel, restaurant, tourism, booking"),
		articles: list("Tourism, Hotel, Restaurant"),
	},
	{
		name: "media_entertainment",
		sic:  [][2]int{{2700, 2799}, {4830, 4841}, {7800, 7999}},
		labels: phrases("media & entertainment; interactive media & services; interactive media; movies; film; " +
			"television; broadcasting; radio; newspapers; news; publishing, printing; games; gaming; " +
			"mobile games; online gaming; social games; social network; social networking; social media; " +
			"social; video; video streaming; photography; photo sharing; photo editing; photos; " +
			"digital media; blogging platforms; blogging; content; curated web; dating; online dating; " +
			"sports; arts; art; music streaming; concerts; celebrity; comics; podcast; motion picture; " +
			"performing arts; digital entertainment; creative; private social networking; " +
			"facebook applications; twitter applications; forums; q&a; social news; lifestyle; religion; " +
			"communities; entertainment industry; user experience design"),
		keywords: list("media, entertainment, game, streaming, publishing, music"),
		articles: list("Streaming_media, Video_game_industry, Mass_media"),
	},
	{
		name: "telecom",
		sic:  [][2]int{{4800, 4829}, {4842, 4899}},
		labels: phrases("telecommunications services; telecommunication services; diversified telecommunication services; " +
			"wireless telecommunication services; communication services; communications; cable; " +
			"internet service providers; mobile network; telephony; phone"),
		keywords: list("telecommunications, telecom, broadband, wireless, satellite"),
		articles: list("Telecommunications, 5G, Internet_service_provider"),
	},
	{
		name: "transport_logistics",
		sic:  [][2]int{{4000, 4799}},
		labels: phrases("airlines; air freight & logistics; airport; airport services; marine; marine shipping; " +
			"road & rail; railroads; railroad; trucking; trucking, truck leasing; transportation; " +
			"transportation and logistics; transportation infrastructure; transportation equipment rental; " +
			"mail, package and freight delivery; package delivery; couriers; supply chain; " +
			"supply chain management; warehousing; ports; public transportation; ride sharing; car sharing; " +
			"parking; taxi"),
		keywords: list("logistics, shipping, freight, delivery, airline, mobility"),
		articles: list("Logistics, Freight_transport, Airline"),
	},
	{
		name: "energy_utilities",
		sic:  [][2]int{{1200, 1399}, {2900, 2999}, {4900, 4999}},
		labels: phrases("utilities; utilities: gas and electric; electric utilities; gas utilities; water utilities; " +
			"multi-utilities; independent power; independent power and renewable electricity producers; " +
			"oil & gas; oil, gas & consumable fuels; oil and gas equipment; oil and gas equipment, services; " +
			"energy equipment & services; petroleum refining; pipelines; mining, crude-oil production; " +
			"crude-oil production; crude oil; natural gas; coal; clean technology; cleantech; " +
			"renewable energy; wind; nuclear; waste management; environmental services; power generation; " +
			"green; batteries; oil & gas midstream"),
		keywords: list("energy, solar, oil, gas, utility, battery"),
		articles: list("Renewable_energy, Petroleum_industry, Electric_battery"),
	},
	{
		name: "education",
		sic:  [][2]int{{8200, 8299}},
		labels: phrases("e-learning; edutech; edtech; educational services; colleges; universities; schools; tutoring; " +
			"training; diversified consumer services; language learning; career planning; textbook; " +
			"k-12 education; corporate training; teachers; kids"),
		keywords: list("education, learning, course, university, school"),
		articles: list("Educational_technology, Higher_education, Massive_open_online_course"),
	},
	{
		name: "consumer_goods",
		sic:  [][2]int{{2000, 2399}, {2840, 2844}, {3900, 3999}},
		labels: phrases("consumer staples; consumer discretionary; household products; household durables; " +
			"household and personal products; household & personal products; personal products; personal care; " +
			"home equipment, furnishings; furniture; food production; food products; food consumer products; " +
			"food, beverage & tobacco; beverages; tobacco; textiles, apparel & luxury goods; textiles; " +
			"luxury goods; leisure products; toys; jewelry; sporting goods; cosmetics; beauty; " +
			"consumer durables & apparel; consumer durables; brewing; breweries; wine; wine and spirits; " +
			"alcohol; pets; pet; footwear; shoes; food processing; food manufacturing; specialty foods; baby; " +
			"fashion industry; consumer products; home & garden; women; men; lingerie; gadget; cooking; " +
			"recipes"),
		keywords: list("consumer goods, food, beverage, apparel, fashion, cosmetics"),
		articles: list("Fast-moving_consumer_goods, Fashion, Food_industry"),
	},
	{
		name: "agriculture_materials",
		sic:  [][2]int{{100, 1199}, {1400, 1499}, {2400, 2699}, {2800, 2832}, {2850, 2899}, {3000, 3399}},
		labels: phrases("metals; metals & mining; chemicals; materials; paper & forest products; paper; forest products; " +
			"packaging; packaging, containers; containers & packaging; glass; plastics; rubber; steel; gold; " +
			"silver; copper; fertilizer; fertilizers; crop; forestry; fishing; farm products; farming; " +
			"agritech; agricultural; nanotechnology; aluminum; specialty chemicals; natural resources"),
		keywords: list("agriculture, farming, mining, chemicals, materials, steel"),
		articles: list("Agriculture, Mining, Chemical_industry"),
	},
	{
		name: "industrials",
		sic:  [][2]int{{3400, 3569}, {3580, 3659}, {3680, 3839}, {3852, 3899}},
		labels: phrases("industrials; capital goods; machinery; industrial machinery; construction and farm machinery; farm machinery; " +
			"electrical equipment; electronics, electrical equip; aerospace & defense; aerospace and defense; " +
			"defense; industrial conglomerates; conglomerates; automobiles; automobiles & components; " +
			"auto components; automobile components; auto parts; motor vehicles & parts; " +
			"motor vehicles and parts; motor vehicles; motor vehicle; automotive; electric vehicles; car; " +
			"cars; transportation equipment; space; space travel; heavy equipment; tools; instruments; " +
			"industrial automation; shipbuilding; fabricated metal; robotics manufacturing; manufacturing"),
		keywords: list("manufacturing, industrial, automotive, aerospace, machinery"),
		articles: list("Manufacturing, Automotive_industry, Aerospace"),
	},
	{
		name: "professional_services",
		sic:  [][2]int{{7200, 7369}, {7375, 7399}, {8100, 8199}, {8700, 8730}, {8732, 8799}},
		labels: phrases("professional services; commercial services & supplies; commercial & professional services; " +
			"commercial services; diversified outsourcing services; outsourcing; advertising; " +
			"advertising, marketing; advertising platforms; ad targeting; human resources; human resource; " +
			"recruiting; employment; employment services; job search; jobs; freelancers; consulting services; " +
			"law; legal services; legal tech; research; design services; public relations; lead generation; " +
			"sales and marketing; sales automation; marketing automation; email marketing; translation; " +
			"security services; facilities support; brand marketing; business services; " +
			"small and medium businesses; market research; surveys; crowdsourcing; enterprise; enterprises; " +
			"startups; incubators; innovation management; business development; b2b; local; local businesses; " +
			"local services; services; home services; printing services; wedding; weddings; concierge"),
		keywords: list("consulting, agency, legal, staffing, marketing, accounting"),
		articles: list("Management_consulting, Law_firm, Marketing"),
	},
	{
		name: "public_nonprofit",
		sic:  [][2]int{{8300, 8699}, {9000, 9999}},
		labels: phrases("non profit; nonprofits; non-profit; charities; philanthropy; politics; civic tech; govtech; " +
			"public administration; religious organizations; social innovation; social entrepreneurship; " +
			"civic; public safety; election"),
		keywords: list("nonprofit, foundation, government, association, charity"),
		articles: list("Nonprofit_organization, Public_sector, Philanthropy"),
	},
}

func list(text string) []string { return strings.Split(text, ", ") }

func phrases(text string) []string { return strings.Split(text, "; ") }

// isSector reports whether the table has a sector of that name.
func isSector(name string) bool {
	return slices.ContainsFunc(sectors, func(s sector) bool { return s.name == name })
}
