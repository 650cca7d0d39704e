package scoring

import "strings"

// sector is one row of the sector table.
type sector struct {
	name string
	// sic are ranges of Standard Industrial Classification codes, both ends included.
	sic [][2]int
	// keywords are in lower case.
	keywords []string
	// articles are titles of the English Wikipedia, with underscores.
	articles []string
}

// sectors is searched in order. Narrow sectors come before wide ones that include them.
var sectors = []sector{
	{
		name:     "ai_data",
		keywords: list("artificial intelligence, machine learning, llm, generative ai, data platform, analytics"),
		articles: list("Artificial_intelligence, Large_language_model, Data_analysis"),
	},
	{
		name:     "cybersecurity",
		keywords: list("cybersecurity, computer security, threat, identity management, zero trust"),
		articles: list("Computer_security, Zero_trust_architecture, Identity_management"),
	},
	{
		name:     "fintech",
		sic:      [][2]int{{6099, 6099}, {6141, 6141}, {6199, 6199}},
		keywords: list("fintech, financial technology, payments, payment, wallet, neobank"),
		articles: list("Financial_technology, Mobile_payment, Neobank"),
	},
	{
		name:     "biotech_pharma",
		sic:      [][2]int{{2833, 2836}, {8731, 8731}},
		keywords: list("biotech, biotechnology, pharmaceutical, therapeutics, clinical trial"),
		articles: list("Biotechnology, Pharmaceutical_industry, Clinical_trial"),
	},
	{
		name:     "healthcare",
		sic:      [][2]int{{3840, 3851}, {6324, 6324}, {8000, 8099}},
		keywords: list("health, healthcare, clinic, patient, telehealth, medical device"),
		articles: list("Health_care, Telehealth, Medical_device"),
	},
	{
		name:     "semiconductors_hardware",
		sic:      [][2]int{{3570, 3579}, {3660, 3679}},
		keywords: list("semiconductor, chip, hardware, electronics, robotics"),
		articles: list("Semiconductor, Computer_hardware, Robotics"),
	},
	{
		name:     "software",
		sic:      [][2]int{{7370, 7374}},
		keywords: list("software, saas, cloud, api, developer, platform"),
		articles: list("Software_as_a_service, Cloud_computing, Enterprise_software"),
	},
	{
		name:     "financial_services",
		sic:      [][2]int{{6000, 6499}, {6700, 6799}},
		keywords: list("bank, insurance, asset management, brokerage, investment"),
		articles: list("Bank, Insurance, Asset_management"),
	},
	{
		name:     "real_estate_construction",
		sic:      [][2]int{{1500, 1799}, {6500, 6599}},
		keywords: list("real estate, property, construction, architecture"),
		articles: list("Real_estate, Construction, Property_management"),
	},
	{
		name:     "ecommerce_retail",
		sic:      [][2]int{{5000, 5799}, {5900, 5999}},
		keywords: list("e-commerce, ecommerce, retail, shop, store, marketplace"),
		articles: list("E-commerce, Retail, Online_marketplace"),
	},
	{
		name:     "travel_hospitality",
		sic:      [][2]int{{5800, 5899}, {7000, 7099}},
		keywords: list("travel, hotel, restaurant, tourism, booking"),
		articles: list("Tourism, Hotel, Restaurant"),
	},
	{
		name:     "media_entertainment",
		sic:      [][2]int{{2700, 2799}, {4830, 4841}, {7800, 7999}},
		keywords: list("media, entertainment, game, streaming, publishing, music"),
		articles: list("Streaming_media, Video_game_industry, Mass_media"),
	},
	{
		name:     "telecom",
		sic:      [][2]int{{4800, 4829}, {4842, 4899}},
		keywords: list("telecommunications, telecom, broadband, wireless, satellite"),
		articles: list("Telecommunications, 5G, Internet_service_provider"),
	},
	{
		name:     "transport_logistics",
		sic:      [][2]int{{4000, 4799}},
		keywords: list("logistics, shipping, freight, delivery, airline, mobility"),
		articles: list("Logistics, Freight_transport, Airline"),
	},
	{
		name:     "energy_utilities",
		sic:      [][2]int{{1200, 1399}, {2900, 2999}, {4900, 4999}},
		keywords: list("energy, solar, oil, gas, utility, battery"),
		articles: list("Renewable_energy, Petroleum_industry, Electric_battery"),
	},
	{
		name:     "education",
		sic:      [][2]int{{8200, 8299}},
		keywords: list("education, learning, course, university, school"),
		articles: list("Educational_technology, Higher_education, Massive_open_online_course"),
	},
	{
		name:     "consumer_goods",
		sic:      [][2]int{{2000, 2399}, {2840, 2844}, {3900, 3999}},
		keywords: list("consumer goods, food, beverage, apparel, fashion, cosmetics"),
		articles: list("Fast-moving_consumer_goods, Fashion, Food_industry"),
	},
	{
		name:     "agriculture_materials",
		sic:      [][2]int{{100, 1199}, {1400, 1499}, {2400, 2699}, {2800, 2832}, {2850, 2899}, {3000, 3399}},
		keywords: list("agriculture, farming, mining, chemicals, materials, steel"),
		articles: list("Agriculture, Mining, Chemical_industry"),
	},
	{
		name:     "industrials",
		sic:      [][2]int{{3400, 3569}, {3580, 3659}, {3680, 3839}, {3852, 3899}},
		keywords: list("manufacturing, industrial, automotive, aerospace, machinery"),
		articles: list("Manufacturing, Automotive_industry, Aerospace"),
	},
	{
		name:     "professional_services",
		sic:      [][2]int{{7200, 7369}, {7375, 7399}, {8100, 8199}, {8700, 8730}, {8732, 8799}},
		keywords: list("consulting, agency, legal, staffing, marketing, accounting"),
		articles: list("Management_consulting, Law_firm, Marketing"),
	},
	{
		name:     "public_nonprofit",
		sic:      [][2]int{{8300, 8699}, {9000, 9999}},
		keywords: list("nonprofit, foundation, government, association, charity"),
		articles: list("Nonprofit_organization, Public_sector, Philanthropy"),
	},
}

func list(text string) []string { return strings.Split(text, ", ") }
